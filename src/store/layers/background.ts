/**
 * Throttles background commits to half of the store's time: while others write, each background commit is followed by a
 * pause as long as the commit took.
 */
import { type Clock, sleep } from "../../runtime.ts";
import type { Kv } from "../kv.ts";

/** A foreground commit this recent suggests that more will follow. */
const LATELY_MS = 1_000;

/** Honours `CommitOptions.background`. */
export function withBackgroundThrottle(kv: Kv, { clock }: { clock: Clock }): Kv {
  let restsUntil = -Infinity;
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
