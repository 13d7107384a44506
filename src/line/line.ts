/**
 * A line: one phone number linked to an account. The API calls it a session.
 *
 * HTTP, panel and commands write the *wanted* state; the line's session brings it about and writes the *actual* state
 * (promise 5).
 *
 * | status       | means                                                                                     |
 * |--------------|-------------------------------------------------------------------------------------------|
 * | initializing | waiting for the network: new, linking again, logging in after the link, or booting;       |
 * |              | or waiting for the account's passkey                                                      |
 * | qr           | a QR waits to be scanned; it rotates                                                      |
 * | pairing      | a code waits to be typed on the phone                                                     |
 * | connected    | logged in: messages go out and come in                                                    |
 * | disconnected | not connected, `reason` says why; reconnects by itself unless `halted` or paused          |
 * | logged_out   | the link is gone: the owner's `reconnect` begins a new one                                |
 */

import { readProxy, shownProxy } from "../egress/proxy_address.ts";
import type { Seal } from "../store/seal.ts";
import type { PasskeyRequest, Restriction } from "../whatsapp/connection.ts";

/** The session states of the specification. */
export const LINE_STATUSES = ["initializing", "qr", "pairing", "connected", "disconnected", "logged_out"] as const;
export type LineStatus = (typeof LINE_STATUSES)[number];

/** The events that may change a line's status. */
export const LINE_TRIGGERS = [
  "booted", // the gateway started: nothing is connected yet
  "linking", // linking began, or began again
  "qr", // the network gave a QR
  "code", // the network gave a pairing code
  "passkey", // the account asks for its passkey, or no longer does: there is nothing to scan or type
  "linked", // the phone accepted the link; the log-in follows
  "opened", // logged in
  "dropped", // a linked line lost its connection, or could not get one
  "reopening", // a new connection replaces the old one at once: 515, or the owner's `reconnect`
  "replaced", // 440: another client logged in with the same link
  "refused", // the network refused this login or link, for a time or for good
  "link_expired", // nobody scanned or typed in time
  "noted", // a field other than the status changed
  "paused", // the owner's `disconnect`
  "logged_out", // unlinked by the owner here, or on the phone
] as const;
export type LineTrigger = (typeof LINE_TRIGGERS)[number];

/** What all statuses have in common in which a link is begun or completed. */
const WHILE_LINKING = {
  booted: "initializing",
  linking: "initializing",
  passkey: "initializing",
  linked: "initializing",
  opened: "connected",
  reopening: "initializing",
  link_expired: "disconnected",
  refused: "disconnected",
  paused: "disconnected",
  logged_out: "logged_out",
} as const satisfies Partial<Record<LineTrigger, LineStatus>>;

/** What connected and disconnected lines have in common. */
const WHILE_LINKED = {
  dropped: "disconnected",
  reopening: "disconnected",
  replaced: "disconnected",
  refused: "disconnected",
  paused: "disconnected",
  logged_out: "logged_out",
} as const satisfies Partial<Record<LineTrigger, LineStatus>>;

/** The next status by status and trigger. A trigger that is not listed for a status does not change the line. */
export const LINE_TRANSITIONS: Readonly<Record<LineStatus, Readonly<Partial<Record<LineTrigger, LineStatus>>>>> = {
  initializing: {
    ...WHILE_LINKING,
    qr: "qr",
    code: "pairing",
    dropped: "disconnected",
    replaced: "disconnected",
    noted: "initializing",
  },
  qr: { ...WHILE_LINKING, qr: "qr", noted: "qr" },
  pairing: { ...WHILE_LINKING, code: "pairing", noted: "pairing" },
  connected: { ...WHILE_LINKED, booted: "initializing", noted: "connected" },
  disconnected: {
    ...WHILE_LINKED,
    booted: "disconnected",
    linking: "initializing",
    linked: "disconnected",
    opened: "connected",
    noted: "disconnected",
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

/** The `reason` of a line that is being exported, also if the command was killed meanwhile. */
export const EXPORTING_REASON =
  "It is being exported to another gateway; if that was interrupted, delete its file and reconnect.";

/** The `reason` of a line that is gone. */
export const DELETED_REASON = "The owner deleted it.";

/**
 * The state that the owner wants. A line that is `exporting` is paused and accepts no messages until the export file is
 * on disk; then it is `exported`.
 */
export type Wanted = "connected" | "paused" | "logged_out" | "deleted" | "exporting" | "exported";

export interface Line {
  id: string;
  accountId: string;
  name: string;
  wanted: Wanted;
  /** Incremented whenever the owner asks for something, so that two reconnects in a row are both carried out. */
  generation: number;
  /** The last generation that the session has carried out; smaller than `generation` while a newer one is pending. */
  observedGeneration: number;
  /** True after an end that only the owner can undo: replaced by another client, logged out, or a link that expired. */
  halted: boolean;
  /** True if WhatsApp refused the last connection; absent from lines that older builds wrote. */
  refused?: boolean;
  status: LineStatus;
  /** Digits; null until the line is linked for the first time. */
  phone: string | null;
  /** When the line was linked to another number than before, Unix ms; absent if it never was. */
  numberSince?: number;
  /** What was wanted before the export began; a failing export restores it. */
  wantedBefore?: Wanted;
  /** The number to link by pairing code, digits; null to link by QR. */
  pairingPhone: string | null;
  /** The QR's text as the network gave it, while the status is `qr`. */
  qr: string | null;
  /** The code to type, while the status is `pairing`. */
  pairingCode: string | null;
  /** What a person has to do with the account's passkey before linking can continue; null for nothing. */
  passkey: PasskeyRequest | null;
  /** The line's own proxy, sealed because of its login, and without the login, to be shown; null for none. */
  proxy: { sealed: Uint8Array; shown: string } | null;
  /** The network's restriction of the account, under which it may start no new chats; null for none. */
  restriction: Restriction | null;
  /** True from pair-success to log-out: sends are accepted even while the line is offline. */
  linked: boolean;
  /**
   * Why the line is not connected, or connected but degraded, in one sentence; null if all is well. While a QR or code
   * is shown: why the last attempt to link failed.
   */
  reason: string | null;
  createdAt: number;
  /** Last connect, send or receive, Unix ms. The current value has a row of its own (`lineKeys.lineUsed`). */
  lastUsed: number;
}

/** The linking fields of a line that has nothing to scan, type or sign. */
export const NOTHING_TO_LINK = { qr: null, pairingCode: null, passkey: null } as const;

/** Returns a new line: wanted connected, with nothing known yet. */
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
    ...NOTHING_TO_LINK,
    restriction: null,
    linked: false,
    reason: null,
    lastUsed: fields.createdAt,
  };
}

/** Returns whether the line was linked to another number at this time, Unix ms, than it is now. */
export function hadOtherNumber({ numberSince = 0 }: Pick<Line, "numberSince">, at: number): boolean {
  return at < numberSince;
}

/** Returns a proxy's address in the form that a line keeps. Throws EgressError if it is not a proxy's address. */
export function sealedProxy(proxy: string | null, seal: Pick<Seal, "seal">): Line["proxy"] {
  if (proxy === null) return null;
  return { sealed: seal.seal(new TextEncoder().encode(proxy)), shown: shownProxy(readProxy(proxy)) };
}

/** Returns the address of the line's proxy, with its login; null for none. Throws SealError. */
export function openedProxy({ proxy }: Line, seal: Pick<Seal, "open">): string | null {
  return proxy && new TextDecoder().decode(seal.open(proxy.sealed));
}
