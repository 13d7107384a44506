/**
 * The rows that link a line, all under one prefix so that a log-out can delete them. Values are sealed unless noted
 * otherwise.
 */
import { type Key, key, type Kv, prefix } from "../../store/kv.ts";
import type { Seal } from "../../store/seal.ts";

/** Identifies the rows of a line, and the seal of their values. */
export interface LineRows {
  kv: Kv;
  seal: Seal;
  lineId: string;
}

export const networkKeys = {
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
   * A part of a stanza that was handed over, so that a second delivery is not an error. Value: when, Unix ms. Not
   * sealed.
   */
  waSeen: (lineId: string, part: string) => key<number>("wa", lineId, "seen", part),
  /** A sent message, encoded, for answering retry receipts. */
  waSent: (lineId: string, networkId: string) => key<Uint8Array>("wa", lineId, "sent", networkId),
  /** A received message, for quoting, reacting, forwarding, and for votes on a poll (`incoming/originals.ts`). */
  waReceived: (lineId: string, networkId: string) => key<Uint8Array>("wa", lineId, "received", networkId),
  /** The JID that the network gave for a number, and when. Not sealed. */
  waRecipient: (lineId: string, number: string) => key<{ jid: string; at: number }>("wa", lineId, "recipient", number),
  /**
   * Index of expiring rows by the UTC day (days since 1970) on which the sweep may delete them. Outside the line's
   * prefix; `forgetEnds` clears it. Value: the row's key. Not sealed.
   */
  waExpiry: (day: number, lineId: string, kind: string, id: string) => key<Key>("wa_expiry", day, lineId, kind, id),
  waExpiriesOf: (day: number, lineId: string) => prefix<Key>("wa_expiry", day, lineId),
  waExpiries: () => prefix<Key>("wa_expiry"),
};
