/**
 * Keys that are not sent with any more, after the store was set back (`setback.ts`): each chat's next message begins a
 * session of its own, each group's brings a new sender key. What others send under the old ones is decrypted as before.
 */
import { batchesOf } from "../../base/batches.ts";
import type { Runtime } from "../../runtime.ts";
import { deleteKeys } from "../../store/delete_range.ts";
import { Change, type Key } from "../../store/kv.ts";
import { lastSetback } from "../setback.ts";
import { decode, encode, isLinked, readCreds } from "./auth_state.ts";
import type { OwnJids } from "./jids.ts";
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
  if (creds !== null && isLinked(creds)) {
    const sessions = kv.list({ prefix: networkKeys.waKeysOf(lineId, "session") });
    for await (const rows of batchesOf(sessions, ROWS_A_COMMIT)) {
      const change = new Change();
      for (const { key, value } of rows) change.set(key, closed(value));
      await kv.commit(change);
    }
    await deleteKeys(kv, ownSenderKeys(creds.me!));
  }
  await kv.commit(new Change().set(networkKeys.waRenewed(lineId), setback));

  /** The row of a session, without a state that encrypts. */
  function closed(row: Uint8Array): Uint8Array {
    const record = decode<SessionRecord>(seal.open(row));
    for (const { indexInfo } of Object.values(record._sessions)) {
      if (indexInfo.closed === OPEN) indexInfo.closed = clock.now();
    }
    return seal.seal(encode(record));
  }

  /** What the line encrypts with in groups, and who has it. */
  async function* ownSenderKeys({ id, lid }: OwnJids): AsyncGenerator<Key> {
    const ends = [id, lid].flatMap((jid) => jid ? senderKeyName("", jid) : []);
    for await (const { key } of kv.list({ prefix: networkKeys.waKeysOf(lineId, "sender-key") })) {
      if (ends.some((end) => String(key.at(-1)).endsWith(end))) yield key;
    }
    for await (const { key } of kv.list({ prefix: networkKeys.waKeysOf(lineId, "sender-key-memory") })) yield key;
  }
}
