/** Reads the first bytes of the content, at most `limit`, and cancels the rest. */
export async function firstBytes(content: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  const first = new GatheredBytes();
  for await (const chunk of content) {
    first.add(chunk);
    if (first.size >= limit) break;
  }
  return first.all.slice(0, limit);
}

/**
 * Bytes that arrive in chunks, in one array. A list of the chunks could take a thousand times the memory: a client may
 * send each byte as a chunk of its own.
 */
export class GatheredBytes {
  #held = new Uint8Array(1024);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The bytes so far. Valid until more are added. */
  get all(): Uint8Array<ArrayBuffer> {
    return this.#held.subarray(0, this.#size);
  }

  /** Copies the chunk. */
  add(chunk: Uint8Array): void {
    const size = this.#size + chunk.length;
    if (size > this.#held.length) {
      const held = new Uint8Array(Math.max(size, 2 * this.#held.length));
      held.set(this.all);
      this.#held = held;
    }
    this.#held.set(chunk, this.#size);
    this.#size = size;
  }
}
