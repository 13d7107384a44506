/**
 * Erasing a person from what a line keeps for the network: copies of what they wrote, addresses, Signal sessions. A
 * connection that is up goes on with what it has in memory; a session that is gone is made anew by the next message.
 */
import { Buffer } from "node:buffer";
import { BufferJSON } from "@whiskeysockets/baileys";
import { deleteKeys } from "../../store/delete_range.ts";
import { Change, type Key, type Kv, stretchOf } from "../../store/kv.ts";
import type { Traces } from "../person.ts";
import { expiryOf } from "./expiry.ts";
import { SEEN_DAYS } from "./incoming/journal.ts";
import { RECIPIENT_DAYS } from "./outgoing/recipients.ts";
import { type LineRows, networkKeys } from "./rows.ts";

/** Rows of one step. */
const READ_AT_ONCE = 300;
/** Keys of these types are named for whom they are about, first of all. */
const OF_PERSON = ["session", "identity-key", "device-list", "tctoken"];
const OF_PEOPLE = new Set([...OF_PERSON, "lid-mapping", "sender-key"]);

/**
 * Removes the keys that are named for a person; resolves to how many. Whose a `@lid` is stays: the network need not say it
 * again.
 */
export async function eraseKeys(kv: Kv, lineId: string, traces: Traces): Promise<number> {
  async function* theirs(): AsyncGenerator<Key> {
    for (const type of OF_PERSON) {
      for (const user of traces.users) {
        const [start, end] = [user, `${user}~`].map((id) => networkKeys.waKey(lineId, type, id));
        const range = { prefix: networkKeys.waKeysOf(lineId, type), start: start!, end: end! };
        for await (const { key } of kv.list(range)) if (traces.isInKey(String(key.at(-1)))) yield key;
      }
    }
  }
  return await deleteKeys(kv, theirs());
}

/** Looks at the next rows from a key on (null: from the first); resolves to where to go on, null at the end. */
export async function eraseTraces(
  { kv, seal, lineId }: LineRows,
  traces: Traces,
  at: Key | null,
): Promise<Key | null> {
  const change = new Change();
  const { rows, next } = await stretchOf(kv, networkKeys.waLine(lineId), { from: at, limit: READ_AT_ONCE });
  for (const { key, value } of rows) {
    if (!isTheirs(key, value)) continue;
    change.delete(key);
    const [kind, id] = key.slice(2).map(String);
    if (kind === "seen") change.delete(expiryOf({ lineId, kind, id: id!, days: SEEN_DAYS, now: Number(value) }));
    if (kind === "recipient") {
      const { at: now } = value as { at: number };
      change.delete(expiryOf({ lineId, kind, id: id!, days: RECIPIENT_DAYS, now }));
    }
  }
  if (change.mutations.length > 0) await kv.commit(change);
  return next;

  function opened(value: unknown): Buffer {
    return Buffer.from(seal.open(value as Uint8Array));
  }

  function isTheirs(key: Key, value: unknown): boolean {
    const [, , family, ...id] = key.map(String);
    switch (family) {
      case "key":
        // Which members of a group have the line's key: without the row all are given it anew.
        if (id[0] === "sender-key-memory") return traces.isInKey(opened(value).toString("latin1"));
        return OF_PEOPLE.has(id[0]!) && traces.isInKey(id[1]!);
      case "seen":
        return traces.isInKey(id[0]!);
      case "recipient":
        return traces.isInKey(id[0]!) || traces.isIn(value);
      case "received": {
        const { message, ...original } = JSON.parse(opened(value).toString(), BufferJSON.reviver);
        // The names in an encoded message are plain letters.
        return traces.isIn(original) || traces.isIn(Buffer.from(message).toString("latin1"));
      }
      default:
        return false;
    }
  }
}
