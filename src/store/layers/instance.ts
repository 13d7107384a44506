/** Numbers that tell apart the instances of a store that write to the same data. */
import { Change, type Kv, retryOnConflict } from "../kv.ts";
import { storeKeys } from "./rows.ts";

/** This instance's number, which no other and no earlier one has; drawn from the store when it is first asked for. */
export function instanceNumber(kv: Kv): () => Promise<number> {
  let drawn: Promise<number> | null = null;
  const draw = () =>
    retryOnConflict(kv, async () => {
      const slot = await kv.get(storeKeys.instances());
      const number = (slot.value ?? 0) + 1;
      return { change: new Change().check(slot).set(storeKeys.instances(), number), result: number };
    });
  return async () => {
    drawn ??= draw();
    try {
      return await drawn;
    } catch (error) {
      drawn = null;
      throw error;
    }
  };
}
