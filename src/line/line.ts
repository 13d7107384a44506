/**
 * A line: one phone number linked to an account; the API calls it a session.
 *
 * HTTP, panel and commands write what is *wanted*; the line's session brings it about and writes what *is* (promise 5).
 *
 * | status       | means                                                                                     |
 * |--------------|-------------------------------------------------------------------------------------------|
 * | initializing | no answer from the network yet: new, linking again, logging in after the link, or booting; |
 * |              | or the account asks for its passkey before it goes on                                     |
 * | qr           | a QR waits to be scanned; it rotates                                                      |
 * | pairing      | a code waits to be typed on the phone                                                     |
 * | connected    | logged in: messages go out and come in                                                    |
 * | disconnected | not connected, `reason` says why; comes back by itself unless `halted` or paused          |
 * | logged_out   | the link is gone: a new one begins with the owner's `reconnect`                           |
 */

import { readProxy, shownProxy } from "../egress/proxy_address.ts";
import type { Seal } from "../store/seal.ts";
import type { Restriction } from "../whatsapp/connection.ts";
import type { PasskeyRequest } from "../whatsapp/passkey.ts";

/** The session states of the specification. */
export const LINE_STATUSES = ["initializing", "qr", "pairing", "connected", "disconnected", "logged_out"] as const;
export type LineStatus = (typeof LINE_STATUSES)[number];

/** What can happen to a line. */
export const LINE_TRIGGERS = [
  "booted", // the gateway started: nothing is connected yet
  "linking", // a link is begun, or begun again
  "qr", // the network gave a QR
  "code", // the network gave a pairing code
  "passkey", // the account asks for its passkey, or does no more: there is nothing to scan or type
  "linked", // the phone accepted the link; the log-in follows
  "opened", // logged in
  "dropped", // a linked line lost its connection, or could not get one
  "reopening", // the connection is replaced by a new one at once: 515, or the owner's `reconnect`
  "replaced", // 440: another client took the place
  "refused", // the network does not want this login or link, now or ever
  "link_expired", // nobody scanned or typed in time
  "noted", // something beside its state was learned
  "paused", // the owner's `disconnect`
  "logged_out", // unlinked by the owner here, or on the phone
] as const;
export type LineTrigger = (typeof LINE_TRIGGERS)[number];

/** Which status follows which on what; what is not here does not change the line. */
export const LINE_TRANSITIONS: Readonly<Record<LineStatus, Readonly<Partial<Record<LineTrigger, LineStatus>>>>> = {
  initializing: {
    booted: "initializing",
    linking: "initializing",
    qr: "qr",
    code: "pairing",
    passkey: "initializing",
    linked: "initializing",
    opened: "connected",
    dropped: "disconnected",
    reopening: "initializing",
    replaced: "disconnected",
    link_expired: "disconnected",
    refused: "disconnected",
    noted: "initializing",
    paused: "disconnected",
    logged_out: "logged_out",
  },
  qr: {
    booted: "initializing",
    linking: "initializing",
    qr: "qr",
    passkey: "initializing",
    linked: "initializing",
    opened: "connected",
    reopening: "initializing",
    link_expired: "disconnected",
    refused: "disconnected",
    noted: "qr",
    paused: "disconnected",
    logged_out: "logged_out",
  },
  pairing: {
    booted: "initializing",
    linking: "initializing",
    code: "pairing",
    passkey: "initializing",
    linked: "initializing",
    opened: "connected",
    reopening: "initializing",
    link_expired: "disconnected",
    refused: "disconnected",
    noted: "pairing",
    paused: "disconnected",
    logged_out: "logged_out",
  },
  connected: {
    booted: "initializing",
    dropped: "disconnected",
    reopening: "disconnected",
    replaced: "disconnected",
    refused: "disconnected",
    noted: "connected",
    paused: "disconnected",
    logged_out: "logged_out",
  },
  disconnected: {
    booted: "disconnected",
    linking: "initializing",
    linked: "disconnected",
    opened: "connected",
    dropped: "disconnected",
    reopening: "disconnected",
    replaced: "disconnected",
    refused: "disconnected",
    noted: "disconnected",
    paused: "disconnected",
    logged_out: "logged_out",
  },
  logged_out: {
    booted: "logged_out",
    linking: "initializing",
    noted: "logged_out",
    paused: "logged_out",
    logged_out: "logged_out",
  },
};

/** The `reason` of a line that was exported. */
export const EXPORTED_REASON = "It was exported to another gateway; reconnect links it here anew.";

/** The `reason` of a line that is gone. */
export const DELETED_REASON = "The owner deleted it.";

/**
 * What the owner wants of the line. `exporting`: paused, and nothing new is accepted, until the file is on disk that
 * takes it elsewhere; then `exported`.
 */
export type Wanted = "connected" | "paused" | "logged_out" | "deleted" | "exporting" | "exported";

export interface Line {
  id: string;
  accountId: string;
  name: string;
  wanted: Wanted;
  /** Grows whenever the owner asks for something, so that "reconnect" twice in a row is done twice. */
  generation: number;
  /** The last generation that the session took up; smaller than `generation` while one waits. */
  observedGeneration: number;
  /** True after an end that only the owner undoes: replaced by another client, logged out, a link nobody accepted. */
  halted: boolean;
  /** True after a connection that WhatsApp refused; left out of lines that older builds have written. */
  refused?: boolean;
  status: LineStatus;
  /** Digits; null until linked once. */
  phone: string | null;
  /** The number to link by code, digits; null when linking is by QR. */
  pairingPhone: string | null;
  /** QR text as the network gave it, while status is `qr`. */
  qr: string | null;
  /** While status is `pairing`. */
  pairingCode: string | null;
  /** What a person has to do with the account's passkey before the link goes on; null when nothing. */
  passkey: PasskeyRequest | null;
  /** The line's own way out: sealed, for its login, and as it may be shown; null for none. */
  proxy: { sealed: Uint8Array; shown: string } | null;
  /** What the account is under: it may start no new chats; null when it may. */
  restriction: Restriction | null;
  /** True from pair-success to log-out: a send is accepted although the line may be offline. */
  linked: boolean;
  /**
   * Why it is not connected, or connected and not well, one sentence; null when all is well. Beside a QR or a code: why
   * the last attempt to link failed.
   */
  reason: string | null;
  createdAt: number;
  /** Last connect, send or receive. Kept in a row of its own; here as it was when the line was read. */
  lastUsed: number;
}

/** Of a line that shows nobody how to link it. */
export const NOTHING_TO_LINK = { qr: null, pairingCode: null, passkey: null } as const;

/** A line as it is created: wanted connected, nothing known yet. */
export function newLine(
  fields: Pick<Line, "id" | "accountId" | "name" | "pairingPhone" | "createdAt"> & Partial<Pick<Line, "proxy">>,
): Line {
  return {
    proxy: null,
    ...fields,
    wanted: "connected",
    generation: 1,
    observedGeneration: 0,
    halted: false,
    status: "initializing",
    phone: null,
    qr: null,
    pairingCode: null,
    passkey: null,
    restriction: null,
    linked: false,
    reason: null,
    lastUsed: fields.createdAt,
  };
}

/** A way out as a line keeps it. Throws EgressError for what is no proxy. */
export function sealedProxy(proxy: string | null, seal: Pick<Seal, "seal">): Line["proxy"] {
  if (proxy === null) return null;
  return { sealed: seal.seal(new TextEncoder().encode(proxy)), shown: shownProxy(readProxy(proxy)) };
}

/** The way out of a line, with its login. Throws SealError. */
export function openedProxy({ proxy }: Line, seal: Pick<Seal, "open">): string | null {
  return proxy && new TextDecoder().decode(seal.open(proxy.sealed));
}
