/** The rows that link a line: everything under one prefix, so that a log-out can drop it; values are sealed. */
import { type Key, key, type Kv, prefix } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";

/** Where the rows of a line lie, and what seals them. */
export interface LineRows {
  kv: Kv;
  seal: Seal;
  lineId: string;
}

export const networkKeys = {
  waLine: (lineId: string) => prefix<unknown>("wa", lineId),
  /** The line's credentials on the network. */
  waCreds: (lineId: string) => key<Uint8Array>("wa", lineId, "creds"),
  /** One key of the library's by its type and id: sessions, pre-keys, sender keys, id mappings, and the journal. */
  waKey: (lineId: string, type: string, id: string) => key<Uint8Array>("wa", lineId, "key", type, id),
  waKeysOf: (lineId: string, type: string) => prefix<Uint8Array>("wa", lineId, "key", type),
  /** Since which setback of the store the line sends with keys of its own (`renewed_keys.ts`); not sealed. */
  waRenewed: (lineId: string) => key<string>("wa", lineId, "renewed"),
  /** A part of a stanza that was handed over (not sealed): delivered again, it is no failure. Value: when, Unix ms. */
  waSeen: (lineId: string, part: string) => key<number>("wa", lineId, "seen", part),
  /** A sent message, encoded, for receivers that ask for it again. */
  waSent: (lineId: string, networkId: string) => key<Uint8Array>("wa", lineId, "sent", networkId),
  /** A message that came in, for quoting it, reacting to it, sending it on, and votes on it (`incoming/originals.ts`). */
  waReceived: (lineId: string, networkId: string) => key<Uint8Array>("wa", lineId, "received", networkId),
  /** The JID that the network gave for a number (not sealed), and when. */
  waRecipient: (lineId: string, number: string) => key<{ jid: string; at: number }>("wa", lineId, "recipient", number),
  /** What the sweep may drop, by the UTC day (days since 1970) on which it ends; the value is the row's key. */
  waExpiry: (day: number, lineId: string, kind: string, id: string) => key<Key>("wa_expiry", day, lineId, kind, id),
  waExpiriesOf: (day: number, lineId: string) => prefix<Key>("wa_expiry", day, lineId),
  waExpiries: () => prefix<Key>("wa_expiry"),
};
