/**
 * Keys that are not sent with any more, after the store was set back (`setback.ts`): each chat's next message begins a
 * session of its own, each group's brings a new sender key. What others send under the old ones is decrypted as before.
 */
import type { Runtime } from "../../runtime.ts";
import { Change } from "../../store/kv.ts";
import { lastSetback } from "../setback.ts";
import { decode, encode, isLinked, readCreds } from "./auth_state.ts";
import { senderKeyName } from "./outgoing/reach.ts";
import { type LineRows, networkKeys } from "./rows.ts";

/** Sessions have some KB each: well below what a commit takes. */
const ROWS_A_COMMIT = 100;

/** A session as the library writes it: states by their base keys, of which the open one encrypts. */
interface SessionRecord {
  _sessions: Record<string, { indexInfo: { closed: number } }>;
}
const OPEN = -1;

interface RenewOptions extends LineRows {
  runtime: Pick<Runtime, "clock">;
}

/** The line, which is not connected, sends with no key from before the last setback. Throws StoreError, SealError. */
export async function renewKeys({ kv, seal, lineId, runtime: { clock } }: RenewOptions): Promise<void> {
  const setback = await lastSetback(kv);
  if (setback === null || (await kv.get(networkKeys.waRenewed(lineId))).value === setback) return;
  const creds = await readCreds({ kv, seal, lineId });
  /** As the names of the line's own sender keys end, behind the group. */
  const own = [creds?.me?.id, creds?.me?.lid].flatMap((jid) => jid ? senderKeyName("", jid) : []);
  let change = new Change();
  const flush = async (atLeast: number) => {
    if (change.mutations.length < atLeast) return;
    await kv.commit(change);
    change = new Change();
  };
  if (creds !== null && isLinked(creds)) {
    for await (const { key, value } of kv.list({ prefix: networkKeys.waKeysOf(lineId, "session") })) {
      const record = decode<SessionRecord>(seal.open(value));
      for (const { indexInfo } of Object.values(record._sessions)) {
        if (indexInfo.closed === OPEN) indexInfo.closed = clock.now();
      }
      change.set(key, seal.seal(encode(record)));
      await flush(ROWS_A_COMMIT);
    }
    for (const type of ["sender-key", "sender-key-memory"]) {
      for await (const { key } of kv.list({ prefix: networkKeys.waKeysOf(lineId, type) })) {
        const isOthers = type === "sender-key" && !own.some((end) => String(key.at(-1)).endsWith(end));
        if (!isOthers) change.delete(key);
        await flush(ROWS_A_COMMIT);
      }
    }
  }
  change.set(networkKeys.waRenewed(lineId), setback);
  await flush(1);
}
