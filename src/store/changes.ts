/**
 * Commands write to the store beside the gateway, and nothing rings in another process (promise 7). Whoever follows their
 * rows hears here that somebody has committed, of any process: one look for all, and one that reads no row.
 */
import type { Service } from "../base/service.ts";
import type { Clock } from "../runtime.ts";

/** What another process wrote is heard of within this time. */
const LOOK_EVERY_MS = 2_000;

export interface Changes {
  /** Calls `look`, which must return at once, soon after a commit, and perhaps without one; answers how to stop that. */
  hear(look: () => void): () => void;
}

/** `hasChanged`: whether anybody has committed since it was last asked; true where that is unknown. */
export function watchChanges(
  { hasChanged, clock }: { hasChanged: () => boolean; clock: Clock },
): Changes & Service {
  const hearers = new Set<() => void>();
  let cancel: (() => void) | null = null;

  function look(): void {
    cancel = clock.after(LOOK_EVERY_MS, look);
    if (hasChanged()) { for (const hearer of hearers) hearer(); }
  }

  return {
    hear(look) {
      hearers.add(look);
      return () => hearers.delete(look);
    },
    start() {
      cancel ??= clock.after(LOOK_EVERY_MS, look);
      return Promise.resolve();
    },
    stop() {
      cancel?.();
      return Promise.resolve();
    },
  };
}
