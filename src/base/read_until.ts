/** Waiting for stored state to become what somebody asked for, by rings and without polling fast. */
import { type Clock, sleep } from "../runtime.ts";

/** So often it looks meanwhile, should a ring have been lost. */
const LOOK_EVERY_MS = 1_000;

interface ReadUntilOptions {
  clock: Clock;
  /** How long it waits, ms. */
  withinMs: number;
  /** Calls `changed` when there may be something new; returns what ends that. */
  watch: (changed: () => void) => () => void;
}

/** Resolves to what `read` gave last: once `done` says so of it, or the time is over. Rejects as `read` does. */
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
