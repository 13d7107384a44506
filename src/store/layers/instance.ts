/** Numbers that tell apart the instances of a store that write to the same data. */
import { onDemand } from "../../base/single_flight.ts";
import type { Clock } from "../../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../kv.ts";
import { storeKeys } from "./rows.ts";

/**
 * This instance's number, which no other and no earlier one has; drawn from the store when it is first asked for. With the
 * clock, Unix seconds: a store that has lost its last commits may have lost the highest number.
 */
export function instanceNumber(kv: Kv, clock: Clock): () => Promise<number> {
  return onDemand(() =>
    retryOnConflict(kv, async () => {
      const slot = await kv.get(storeKeys.instances());
      const number = Math.max((slot.value ?? 0) + 1, Math.floor(clock.now() / 1000));
      return { change: new Change().check(slot).set(storeKeys.instances(), number), result: number };
    })
  ).need;
}
