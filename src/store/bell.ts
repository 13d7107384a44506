/** What wakes the readers of rows: the bell, and the watch for commits by processes that ring none. */
import type { Service } from "../base/service.ts";
import { Loop } from "../base/single_flight.ts";
import type { Clock } from "../runtime.ts";

/**
 * The port to the bell (promise 7: rows are the truth; a bell only wakes their readers).
 *
 * Contract, kept by every engine and proved by `tests/contract/bell_test.ts`:
 * - A ring reaches listeners in the same process at once, and never early. On a bell shared by many processes it
 *   reaches listeners in the others shortly afterwards. A timed ring (`ringAt`) stays in the process that set it.
 * - A ring may be lost (after a crash), duplicated, or stale. Callers therefore set their rings again at boot and in a
 *   slow sweep over everything that has work waiting.
 * - When rings from other processes may have been lost, listeners are called with their prefix as the topic: anything
 *   below it may have rung.
 */
export interface Bell {
  /** Wakes every listener of the topic now. */
  ring(topic: string): void;
  /**
   * Rings at `atMs` (Unix ms), or at once if that has passed. A topic has one pending time: a later one is ignored, an
   * earlier one replaces it.
   */
  ringAt(topic: string, atMs: number): void;
  /**
   * Calls `wake`, which must return at once, for each topic that begins with `prefix`: a whole topic, or what ends in
   * `/`; empty for all. Returns the unsubscribe function.
   */
  hear(prefix: string, wake: (topic: string) => void): () => void;
  /** Cancels all pending rings. Idempotent. */
  close(): Promise<void>;
}

/** The bell of one process, which may be told of rings in others. */
export interface OwnBell extends Bell {
  /** Calls every listener with its prefix: rings of other processes may have been lost. */
  missed(): void;
}

/** A commit by another process is noticed within this time. */
const LOOK_EVERY_MS = 2_000;

export interface Changes {
  /**
   * Calls `look`, which must return at once, soon after a commit, and sometimes without one. Returns the unsubscribe
   * function.
   */
  hear(look: () => void): () => void;
}

/**
 * Detects commits by other processes: commands write to the store while the gateway runs, and their bells do not reach
 * it. One poll, which reads no row, serves every subscriber. `hasChanged`: whether any process has committed since the
 * last call; true if that is unknown.
 */
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
