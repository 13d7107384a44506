/**
 * Retires the sending keys after the store was set back (`network.ts`). The next message to each chat then starts a new
 * session, and the next one to each group carries a new sender key. Messages that others encrypt with the old keys are
 * still decrypted.
 */
import { batchesOf } from "../../base/batches.ts";
import type { Runtime } from "../../runtime.ts";
import { deleteKeys } from "../../store/delete_range.ts";
import { Change, type Key } from "../../store/kv.ts";
import { lastSetback } from "../network.ts";
import { decode, encode, readLink } from "./auth_state.ts";
import type { OwnJids } from "./jids.ts";
import { senderKeyName } from "./outgoing/devices.ts";
import { type LineRows, networkKeys } from "./rows.ts";

/** A session takes a few KB, so this stays well below the limits of a commit. */
const ROWS_A_COMMIT = 100;

/**
 * A session record in the library's format: session states by their base keys. The open state is the one that encrypts.
 */
interface SessionRecord {
  _sessions: Record<string, { indexInfo: { closed: number } }>;
}
const OPEN = -1;

interface RenewOptions extends LineRows {
  runtime: Pick<Runtime, "clock">;
}

/**
 * Ensures that the line no longer sends with keys from before the last setback. The line must not be connected. Throws
 * StoreError, SealError.
 */
export async function renewKeys({ kv, seal, lineId, runtime: { clock } }: RenewOptions): Promise<void> {
  const setback = await lastSetback(kv);
  if (setback === null || (await kv.get(networkKeys.waRenewed(lineId))).value === setback) return;
  const creds = await readLink({ kv, seal, lineId });
  if (creds !== null) {
    const sessions = kv.list({ prefix: networkKeys.waKeysOf(lineId, "session") });
    for await (const rows of batchesOf(sessions, ROWS_A_COMMIT)) {
      const change = new Change();
      for (const { key, value } of rows) change.set(key, closed(value));
      await kv.commit(change);
    }
    await deleteKeys(kv, ownSenderKeys(creds.me!));
  }
  await kv.commit(new Change().set(networkKeys.waRenewed(lineId), setback));

  /** Returns the row of a session with its open state closed, so that none encrypts. */
  function closed(row: Uint8Array): Uint8Array {
    const record = decode<SessionRecord>(seal.open(row));
    for (const { indexInfo } of Object.values(record._sessions)) {
      if (indexInfo.closed === OPEN) indexInfo.closed = clock.now();
    }
    return seal.seal(encode(record));
  }

  /** The line's own sender keys for groups, and the lists of who has them. */
  async function* ownSenderKeys({ id, lid }: OwnJids): AsyncGenerator<Key> {
    const ends = [id, lid].flatMap((jid) => jid ? senderKeyName("", jid) : []);
    for await (const { key } of kv.list({ prefix: networkKeys.waKeysOf(lineId, "sender-key") })) {
      if (ends.some((end) => String(key.at(-1)).endsWith(end))) yield key;
    }
    for await (const { key } of kv.list({ prefix: networkKeys.waKeysOf(lineId, "sender-key-memory") })) yield key;
  }
}
