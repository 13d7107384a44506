/**
 * Accounts share the media store fairly. Their files are written in turn, chunk by chunk: an account gets at most half of
 * the thread's time for its chunks, so that a flood of files from one account delays only that account. While all files
 * together exceed the disk's limit, accounts above their share lose received files first, and may not upload.
 */
import { FairSemaphore } from "../base/fair_semaphore.ts";
import { Problem } from "../errors.ts";
import type { Clock } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { mediaKeys } from "./rows.ts";
import type { MediaStore } from "./store.ts";

/** Concurrent writes of chunks. */
const PLACES = { inAll: 4, each: 1 };
/** Interval of the sweep that recomputes the shares of the disk. */
const RETRY_AFTER_SECONDS = 60;

/** The media store as seen by code that writes files on behalf of accounts. */
export interface SharedMediaStore extends Omit<MediaStore, "write"> {
  /** As `MediaStore.write`. */
  write(
    content: ReadableStream<Uint8Array>,
    options: { accountId: string; maxBytes: number },
  ): ReturnType<MediaStore["write"]>;
  /** Number of chunks waiting for their account's turn. */
  waiting(): number;
}

/** Returns the same store with writes scheduled fairly among accounts. */
export function withFairWrites<M extends MediaStore>(media: M, clock: Clock): Omit<M, "write"> & SharedMediaStore {
  const turns = new FairSemaphore({ ...PLACES, restBy: clock });
  let files = 0;
  return {
    ...media,
    waiting: () => turns.waiting,
    async write(content, { accountId, maxBytes }) {
      const turn = { tenant: accountId, lane: String(files++) };
      try {
        return await media.write(ReadableStream.from(chunks(content, () => turns.enter(turn))), maxBytes);
      } catch (error) {
        // If nothing was read from the stream, nothing else has cancelled it.
        await content.cancel(error).catch(() => {});
        throw error;
      }
    },
  };
}

/** Yields the chunks, holding a place while each is processed, but not while waiting for the sender. */
async function* chunks<T>(content: ReadableStream<T>, enter: () => Promise<Disposable>): AsyncGenerator<T> {
  for await (const chunk of content) {
    using _place = await enter();
    yield chunk;
  }
}

export class DiskShares {
  /** Bytes above the share, by account. */
  #over = new Map<string, number>();

  /** Recomputes each account's excess over an equal part of the limit. Reads the row of every file. */
  async weigh(kv: Kv, capBytes: number): Promise<void> {
    const used = new Map<string, number>();
    for await (const { value: { accountId, size } } of kv.list({ prefix: mediaKeys.files() })) {
      used.set(accountId, (used.get(accountId) ?? 0) + size);
    }
    const share = capBytes / Math.max(1, used.size);
    this.#over = new Map([...used].map(([id, bytes]) => [id, bytes - share] as const).filter(([, over]) => over > 0));
  }

  /** Called when all files fit again. */
  clear(): void {
    this.#over.clear();
  }

  /** Whether a received file of the account should be removed; if no account exceeds its share, any file may be. */
  mustGive(accountId: string): boolean {
    return this.#over.size === 0 || (this.#over.get(accountId) ?? 0) > 0;
  }

  /** Records that bytes of the account were removed. */
  gave(accountId: string, bytes: number): void {
    const over = this.#over.get(accountId);
    if (over !== undefined) this.#over.set(accountId, over - bytes);
  }

  /** Throws Problem too_much_at_once while the account exceeds its share of a full disk. */
  assertRoom(accountId: string): void {
    if ((this.#over.get(accountId) ?? 0) <= 0) return;
    throw new Problem("too_much_at_once", "The account's files take more than its share of the disk.", {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }
}
