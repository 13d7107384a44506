/**
 * A line: one phone number linked to an account; the API calls it a session.
 *
 * HTTP, panel and commands write what is *wanted*; the supervisor brings it about and writes what *is* (promise 5).
 */

/** The session states of the specification. */
export const LINE_STATUSES = ["initializing", "qr", "pairing", "connected", "disconnected", "logged_out"] as const;
export type LineStatus = (typeof LINE_STATUSES)[number];

/** What the owner wants of the line. */
export type LineWish = "connected" | "paused" | "logged_out" | "deleted";

export interface Line {
  id: string;
  accountId: string;
  name: string;
  wanted: LineWish;
  /** Grows with every wish, so that "reconnect" twice in a row is two wishes. */
  wishNumber: number;
  status: LineStatus;
  /** Digits; null until linked once. */
  phone: string | null;
  /** The number to link by code, digits; null when linking is by QR. */
  pairingPhone: string | null;
  /** QR text as the network gave it, while status is `qr`. */
  qr: string | null;
  /** While status is `pairing`. */
  pairingCode: string | null;
  /** True from pair-success to log-out: a send is accepted although the line may be offline. */
  linked: boolean;
  /** Why it is not connected, one sentence; null when connected. */
  reason: string | null;
  createdAt: number;
  /** Last connect, send or receive. */
  lastUsed: number;
}
