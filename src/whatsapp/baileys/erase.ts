/**
 * Erases a person from what a line stores for the network: copies of their messages, addresses, Signal sessions. An
 * open connection continues with what it has in memory. The next message recreates a missing session.
 */
import { Buffer } from "node:buffer";
import { BufferJSON } from "@whiskeysockets/baileys";
import { deleteKeys } from "../../store/delete_range.ts";
import { Change, type Key, type Kv, stretchOf } from "../../store/kv.ts";
import type { Traces } from "../person.ts";
import { expiryOf, type LineRows, networkKeys } from "./rows.ts";
import { SEEN_DAYS } from "./incoming/journal.ts";
import { RECIPIENT_DAYS } from "./outgoing/addressing.ts";

/** Rows read per call. */
const READ_AT_ONCE = 300;
/** Ids of keys of these types begin with the person they belong to. */
const OF_PERSON = ["session", "identity-key", "device-list", "tctoken"];
const OF_PEOPLE = new Set([...OF_PERSON, "lid-mapping", "sender-key"]);

/**
 * Removes the keys whose id names the person; resolves to how many. The mapping from `@lid` to number stays, because
 * the network might not reveal it again.
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

/**
 * Erases in the next batch of rows from `at` on (null: the first row). Resolves to the key where to continue, or null
 * at the end.
 */
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
    const [, , kind] = key;
    if (kind === "seen") change.delete(expiryOf(key, { days: SEEN_DAYS, now: Number(value) }));
    if (kind === "recipient") {
      change.delete(expiryOf(key, { days: RECIPIENT_DAYS, now: (value as { at: number }).at }));
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
        // Lists the group members who have the line's sender key. Without the row, all of them are sent the key again.
        if (id[0] === "sender-key-memory") return traces.isInKey(opened(value).toString("latin1"));
        return OF_PEOPLE.has(id[0]!) && traces.isInKey(id[1]!);
      case "seen":
      case "timer":
      case "aside":
        return traces.isInKey(id[0]!);
      case "recipient":
        return traces.isInKey(id[0]!) || traces.isIn(value);
      case "received": {
        const { message, ...original } = JSON.parse(opened(value).toString(), BufferJSON.reviver);
        // Names appear in an encoded message as plain text.
        return traces.isIn(original) || traces.isIn(Buffer.from(message).toString("latin1"));
      }
      default:
        return false;
    }
  }
}
