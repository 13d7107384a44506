/**
 * Keeps the confirmed time over restarts, so that a clock that is wrong from the start deletes nothing. While the
 * system's clock runs ahead unconfirmed, it warns; what would expire or be deleted stays, and sending goes on.
 */
import type { Service } from "../base/service.ts";
import { Loop } from "../base/single_flight.ts";
import { dataKeys } from "../data/rows.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv } from "../store/kv.ts";

/** How often the time is written, which costs a flush. */
const KEEP_EVERY_MS = 10 * 60_000;

export function makeTimeKeeper(kv: Kv, { clock, confirmed, log }: Runtime): Service {
  let isWarned = false;

  async function keep(): Promise<number> {
    const aheadMs = confirmed.aheadMs();
    if (aheadMs > 0 && !isWarned) {
      const hours = Math.round(aheadMs / 3_600_000);
      log.warn({ hours }, "the clock jumped ahead; nothing expires or is deleted until the time is confirmed");
    } else if (aheadMs === 0 && isWarned) log.info("the time is confirmed; what has expired is removed again");
    isWarned = aheadMs > 0;
    try {
      await kv.commit(new Change().set(dataKeys.confirmedAt(), confirmed.now()));
    } catch (error) {
      log.debug({ error: String(error) }, "the confirmed time could not be kept");
    }
    return KEEP_EVERY_MS;
  }

  const loop = new Loop(clock, keep);
  return {
    async start() {
      const { value } = await kv.get(dataKeys.confirmedAt());
      if (value !== null) confirmed.resume(value);
      loop.start(confirmed.aheadMs() > 0 ? 0 : KEEP_EVERY_MS);
    },
    stop: () => loop.stop(),
  };
}
