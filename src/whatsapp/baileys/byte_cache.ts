/** A least-recently-used cache of byte values, bounded by their total length. */
export class ByteCache {
  readonly #values = new Map<string, Uint8Array>();
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(name: string): Uint8Array | undefined {
    const value = this.#values.get(name);
    if (value) {
      this.#values.delete(name);
      this.#values.set(name, value);
    }
    return value;
  }

  set(name: string, value: Uint8Array): void {
    this.delete(name);
    this.#values.set(name, value);
    this.#bytes += value.length;
    for (const oldest of this.#values.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.delete(oldest);
    }
  }

  delete(name: string): void {
    const value = this.#values.get(name);
    if (!value) return;
    this.#values.delete(name);
    this.#bytes -= value.length;
  }
}
