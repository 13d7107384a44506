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
  let rest = { endsAt: 0, ms: 0 };
  let lastOtherAt = -Infinity;

  function leftOfRest(): number {
    const leftMs = rest.endsAt - clock.now();
    // A rest that ends too far ahead began before the clock was set back.
    return leftMs <= rest.ms ? leftMs : 0;
  }

  return {
    ...kv,
    async commit(change, options) {
      if (!options?.background) {
        lastOtherAt = clock.now();
        return await kv.commit(change, options);
      }
      const restMs = leftOfRest();
      if (restMs > 0) await sleep(clock, restMs);
      const begun = clock.now();
      const version = await kv.commit(change, options);
      const now = clock.now();
      const ms = now - begun;
      if (now - lastOtherAt < LATELY_MS && ms > leftOfRest()) rest = { endsAt: now + ms, ms };
      return version;
    },
  };
}
