/**
 * Records that the store was set back: a backup was restored, or a database lost its last commits. The lines' keys in
 * it may then be older than messages already sent with them. Recipients silently drop a message encrypted with a key
 * that they have seen before.
 */
import type { Runtime } from "../runtime.ts";
import { Change, key, type Kv } from "../store/kv.ts";

/** A random name for the last setback. */
const lastKey = () => key<string>("setback");

/** From now on, no line sends with keys that were in the store before this call. Throws StoreError. */
export async function noteSetback(kv: Kv, { ids }: Pick<Runtime, "ids">): Promise<void> {
  await kv.commit(new Change().set(lastKey(), ids.network()));
}

/** Returns the name of the last setback; null if the store was never set back. Throws StoreError. */
export async function lastSetback(kv: Kv): Promise<string | null> {
  return (await kv.get(lastKey())).value;
}
