/**
 * What a piece of work was caused by: a frame that came in, or something that the gateway wants by itself.
 *
 * The library uses the same calls for both, and a store that refuses means more to the one than to the other. The mark
 * goes with everything that is awaited; work that nobody marked counts as the gateway's own.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export interface Cause {
  /** Runs `work` as caused by a frame. */
  frame<T>(work: () => T): T;
  /** Runs `work` as the gateway's own, also where a frame led to it. */
  own<T>(work: () => T): T;
  isFrame(): boolean;
}

export function makeCause(): Cause {
  const storage = new AsyncLocalStorage<"frame" | "own">();
  return {
    frame: (work) => storage.run("frame", work),
    own: (work) => storage.run("own", work),
    isFrame: () => storage.getStore() === "frame",
  };
}
