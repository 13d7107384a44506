/** Waits until stored state has changed as requested: notified by rings, with slow polling as a fallback. */
import { type Clock, sleep } from "../runtime.ts";

/** Polling interval, in case a ring is lost. */
const LOOK_EVERY_MS = 1_000;

interface ReadUntilOptions {
  clock: Clock;
  /** How long to wait, ms. */
  withinMs: number;
  /** Calls `changed` when the state may have changed; returns the unsubscribe function. */
  watch: (changed: () => void) => () => void;
}

/** Resolves to the last value that was read, once `done` accepts it or the time is over. Rejects as `read` does. */
export async function readUntil<T>(
  read: () => Promise<T>,
  done: (now: T) => boolean,
  { clock, withinMs, watch }: ReadUntilOptions,
): Promise<T> {
  const over = clock.now() + withinMs;
  for (;;) {
    const changed = new AbortController();
    const unwatch = watch(() => changed.abort());
    try {
      const now = await read();
      const left = over - clock.now();
      if (done(now) || left <= 0) return now;
      await sleep(clock, Math.min(left, LOOK_EVERY_MS), changed.signal);
    } finally {
      unwatch();
    }
  }
}
