/**
 * The rows that link a line, all under one prefix so that a log-out can delete them. Values are sealed unless noted
 * otherwise. Rows that expire have an index by day, used instead of the engine's own expiry.
 */
import { Change, type Key, key, type KeyOf, type Kv, prefix } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";
import { deleteKeys, deleteRange } from "../../store/delete_range.ts";

/** Identifies the rows of a line, and the seal of their values. */
export interface LineRows {
  kv: Kv;
  seal: Seal;
  lineId: string;
}

/** How long messages of a chat stay. */
export interface Timer {
  /** 0: for ever. */
  seconds: number;
  /** When it was set, Unix seconds; 0 if unknown. */
  setAt: number;
}

/** A version of WhatsApp Web that was fetched. */
export interface FetchedVersion {
  version: string;
  host: string;
  /** Unix ms. */
  at: number;
}

export const networkKeys = {
  /** The last fetched version of WhatsApp Web. Not of a line, not sealed. */
  waVersion: () => key<FetchedVersion>("wa_version"),
  waLine: (lineId: string) => prefix<unknown>("wa", lineId),
  /** The line's credentials on the network. */
  waCreds: (lineId: string) => key<Uint8Array>("wa", lineId, "creds"),
  /**
   * One of the library's keys, by type and id: sessions, pre-keys, sender keys, id mappings. The journal is kept here
   * too.
   */
  waKey: (lineId: string, type: string, id: string) => key<Uint8Array>("wa", lineId, "key", type, id),
  waKeysOf: (lineId: string, type: string) => prefix<Uint8Array>("wa", lineId, "key", type),
  /** The last setback of the store for which the line's sending keys were renewed (`renewed_keys.ts`). Not sealed. */
  waRenewed: (lineId: string) => key<string>("wa", lineId, "renewed"),
  /**
   * A part of a stanza that was handed over, so that a second delivery is not an error, unless the row of a received
   * message names it. Value: when, Unix ms. Not sealed.
   */
  waSeen: (lineId: string, part: string) => key<number>("wa", lineId, "seen", part),
  /** A message that did not decrypt, which the owner's phone may therefore resend. Value: when, Unix ms. Not sealed. */
  waAsked: (lineId: string, networkId: string) => key<number>("wa", lineId, "asked", networkId),
  /** A journal entry that was set aside because the process ended while it was handed over. */
  waAside: (lineId: string, part: string) => key<Uint8Array>("wa", lineId, "aside", part),
  /** A sent message, encoded, for answering retry receipts. */
  waSent: (lineId: string, networkId: string) => key<Uint8Array>("wa", lineId, "sent", networkId),
  /** A received message, for quoting, reacting, forwarding, and for votes on a poll (`stored_messages.ts`). */
  waReceived: (lineId: string, networkId: string) => key<Uint8Array>("wa", lineId, "received", networkId),
  /** The JID that the network gave for a number, and when. Not sealed. */
  waRecipient: (lineId: string, number: string) => key<{ jid: string; at: number }>("wa", lineId, "recipient", number),
  /** How long messages of a 1:1 chat stay (`disappearing.ts`). Not sealed. */
  waTimer: (lineId: string, chat: string) => key<Timer>("wa", lineId, "timer", chat),
  /**
   * Index of expiring rows by the UTC day (days since 1970) on which the sweep may delete them. Outside the line's
   * prefix; `forgetEnds` clears it. Value: the row's key. Not sealed.
   */
  waExpiry: (day: number, lineId: string, kind: string, id: string) => key<Key>("wa_expiry", day, lineId, kind, id),
  waExpiriesOf: (day: number, lineId: string) => prefix<Key>("wa_expiry", day, lineId),
  waExpiries: () => prefix<Key>("wa_expiry"),
};

const DAY_MS = 24 * 60 * 60 * 1000;

/** Polls, kept so that votes on them can be read. Nothing is kept longer than this. */
export const POLL_KEPT_DAYS = 90;

interface Ending {
  /** The row is kept at least this long. At most `POLL_KEPT_DAYS`. */
  days: number;
  /** When the row is written, Unix ms. */
  now: number;
  /** The id of the index row, if it is not the row's. */
  id?: string;
}

/** Whether a row written at time `at` and kept for `days` days is still there. Rows expire by whole days. */
export function isKept({ days, at }: { days: number; at: number }, now: number): boolean {
  return Math.floor(now / DAY_MS) < endDay(days, at);
}

/** Returns the key of the index row that says when a row of a line expires. */
export function expiryOf(row: Key, { days, now, id }: Ending): KeyOf<Key> {
  const [, lineId = "", kind = "", rowId = ""] = row.map(String);
  return networkKeys.waExpiry(endDay(days, now), lineId, kind, id ?? rowId);
}

/** Adds to the change an index row by which the sweep deletes `row` after `days` days. */
export function expireAfter(change: Change, row: Key, ending: Ending): Change {
  return change.set(expiryOf(row, ending), row);
}

/** Deletes the index rows of a line whose own rows are gone: they contain the names of senders. */
export async function forgetEnds(kv: Kv, lineId: string, now: number): Promise<void> {
  const today = Math.floor(now / DAY_MS);
  for (let day = today - 1; day <= today + POLL_KEPT_DAYS + 1; day++) {
    await deleteRange(kv, { prefix: networkKeys.waExpiriesOf(day, lineId) });
  }
}

/** Deletes expired rows, such as seen stanzas and sent messages. Returns how many. */
export async function sweepExpired(kv: Kv, now: number): Promise<number> {
  return await deleteKeys(kv, ended(kv, Math.floor(now / DAY_MS))) / 2;
}

/** Yields each row before its index row, so that an interrupted sweep finds what is left. */
async function* ended(kv: Kv, today: number): AsyncGenerator<Key> {
  // The key part after the prefix is the day: this covers everything before tomorrow.
  const range = { prefix: networkKeys.waExpiries(), end: [...networkKeys.waExpiries(), today + 1] };
  for await (const { key, value } of kv.list<Key>(range)) {
    yield value;
    yield key;
  }
}

/** The UTC day, in days since 1970, from which the sweep may delete the row. */
function endDay(days: number, at: number): number {
  return Math.floor(at / DAY_MS) + days + 1;
}

/** Returns the same bytes as no Buffer: the library's JSON makes an array of all bytes of one first. */
export function plainBytes({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
