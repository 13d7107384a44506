/**
 * Detects commits by other processes. Commands write to the store while the gateway runs, and no bell rings across
 * processes (promise 7). One poll, which reads no row, serves every subscriber.
 */
import type { Service } from "../base/service.ts";
import { Loop } from "../base/single_flight.ts";
import type { Clock } from "../runtime.ts";

/** A commit by another process is noticed within this time. */
const LOOK_EVERY_MS = 2_000;

export interface Changes {
  /**
   * Calls `look`, which must return at once, soon after a commit, and sometimes without one. Returns the unsubscribe
   * function.
   */
  hear(look: () => void): () => void;
}

/** `hasChanged`: whether any process has committed since the last call; true if that is unknown. */
export function watchChanges(
  { hasChanged, clock }: { hasChanged: () => boolean; clock: Clock },
): Changes & Service {
  const hearers = new Set<() => void>();
  const looks = new Loop(clock, () => {
    if (hasChanged()) { for (const hearer of hearers) hearer(); }
    return Promise.resolve(LOOK_EVERY_MS);
  });

  return {
    hear(look) {
      hearers.add(look);
      return () => hearers.delete(look);
    },
    start() {
      looks.start(LOOK_EVERY_MS);
      return Promise.resolve();
    },
    stop: () => looks.stop(),
  };
}
