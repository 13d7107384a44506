/**
 * Commits of work that can wait leave half of the store's time to others: after one, the next such commit rests for as long
 * as it took. When nobody else writes, none rests.
 */
import { type Clock, sleep } from "../../runtime.ts";
import type { Kv } from "../kv.ts";

/** Whoever wrote so lately probably writes again. */
const LATELY_MS = 1_000;

/** Honours `CommitOptions.background`. */
export function withBackgroundThrottle(kv: Kv, { clock }: { clock: Clock }): Kv {
  let restsUntil = 0;
  let lastOtherAt = -Infinity;
  return {
    ...kv,
    async commit(change, options) {
      if (!options?.background) {
        lastOtherAt = clock.now();
        return await kv.commit(change, options);
      }
      const restMs = restsUntil - clock.now();
      if (restMs > 0) await sleep(clock, restMs);
      const begun = clock.now();
      const version = await kv.commit(change, options);
      const now = clock.now();
      if (now - lastOtherAt < LATELY_MS) restsUntil = Math.max(restsUntil, now + (now - begun));
      return version;
    },
  };
}
