/**
 * Files are written piece by piece in turn: a piece of one account's, then one of another's. An account has half of the
 * thread's time for its pieces at most, so that a flood of files waits behind itself.
 */
import { FairSemaphore } from "../base/fair_semaphore.ts";
import type { Clock } from "../runtime.ts";
import type { MediaStore } from "./store.ts";

/** Pieces that are written at the same time. */
const PLACES = { inAll: 4, each: 1 };

/** The port of whoever writes files of accounts. */
export interface SharedMediaStore extends Omit<MediaStore, "write"> {
  /** As `MediaStore.write`. */
  write(
    content: ReadableStream<Uint8Array>,
    options: { accountId: string; maxBytes: number },
  ): ReturnType<MediaStore["write"]>;
  /** How many pieces wait for their account's turn. */
  waiting(): number;
}

/** The same store, to which accounts write in turn. */
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
        // Where nothing was read of it, nobody has cancelled it.
        await content.cancel(error).catch(() => {});
        throw error;
      }
    },
  };
}

/** Each piece has a place until the next one is asked for, or none is; the sender is waited for without one. */
async function* pieces<T>(content: ReadableStream<T>, enter: () => Promise<Disposable>): AsyncGenerator<T> {
  for await (const piece of content) {
    using _place = await enter();
    yield piece;
  }
}
