/**
 * Writes files chunk by chunk, with accounts taking turns. An account gets at most half of the thread's time for its
 * chunks, so that a flood of files from one account delays only that account.
 */
import { FairSemaphore } from "../base/fair_semaphore.ts";
import type { Clock } from "../runtime.ts";
import type { MediaStore } from "./store.ts";

/** Concurrent writes of chunks. */
const PLACES = { inAll: 4, each: 1 };

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
      const turn = { party: accountId, lane: String(files++) };
      try {
        return await media.write(ReadableStream.from(pieces(content, () => turns.enter(turn))), maxBytes);
      } catch (error) {
        // If nothing was read from the stream, nothing else has cancelled it.
        await content.cancel(error).catch(() => {});
        throw error;
      }
    },
  };
}

/** Yields the chunks, holding a place while each is processed, but not while waiting for the sender. */
async function* pieces<T>(content: ReadableStream<T>, enter: () => Promise<Disposable>): AsyncGenerator<T> {
  for await (const piece of content) {
    using _place = await enter();
    yield piece;
  }
}
