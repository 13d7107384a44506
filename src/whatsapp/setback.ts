/**
 * A store that was set back: a backup was restored, or a database has lost its last commits. The keys of the lines in it
 * may be older than what was sent with them, and recipients drop without a word what comes under a key that they have
 * seen.
 */
import type { Runtime } from "../runtime.ts";
import { Change, key, type Kv } from "../store/kv.ts";

/** The last one, by a name of its own. */
const lastKey = () => key<string>("setback");

/** From now on no line goes on with keys for sending that it finds in the store. Throws StoreError. */
export async function noteSetback(kv: Kv, { ids }: Pick<Runtime, "ids">): Promise<void> {
  await kv.commit(new Change().set(lastKey(), ids.network()));
}

/** The name of the last one; null for a store that never was set back. Throws StoreError. */
export async function lastSetback(kv: Kv): Promise<string | null> {
  return (await kv.get(lastKey())).value;
}
