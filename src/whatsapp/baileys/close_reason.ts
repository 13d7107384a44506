/** Derives why a connection ended from the library's error and the network's close codes. */
import type { BinaryNode } from "@whiskeysockets/baileys";
import { statusOf } from "./stanza.ts";
import type { CloseReason } from "../connection.ts";
import { UntrustedServer } from "./repairs/handshake.ts";

/**
 * What the codes of the network mean.
 *
 * | code               | kind        | then                                    |
 * |--------------------|-------------|-----------------------------------------|
 * | 515                | restart     | connect again at once                   |
 * | 440                | replaced    | another client took over: stay away     |
 * | 401, 403           | logged_out  | the link is gone                        |
 * | 408, 428, 500, 503 | unavailable | back off; the same for unknown codes    |
 * | 402, 405, 409      | refused     | leave it alone for an hour              |
 * | 406, 516           | refused     | leave it alone: the owner has to look   |
 * | none               | lost        | the socket dropped or went silent       |
 * | none               | untrusted   | the other end's identity is not proven  |
 */
const KINDS: Readonly<Record<number, CloseReason["kind"]>> = {
  401: "logged_out",
  403: "logged_out",
  440: "replaced",
  515: "restart",
};

const HOUR_MS = 60 * 60_000;

/** Login refusals: why, and when to try again. Retrying earlier makes them worse. */
const REFUSALS: Readonly<Record<number, { detail: string; retryAfterMs: number | null }>> = {
  402: { detail: "WhatsApp has banned this number for a while.", retryAfterMs: HOUR_MS },
  405: { detail: "WhatsApp refused the version of its web client that is announced.", retryAfterMs: HOUR_MS },
  406: { detail: "WhatsApp has banned this account.", retryAfterMs: null },
  409: { detail: "WhatsApp refused this kind of client.", retryAfterMs: HOUR_MS },
  516: {
    detail: "WhatsApp does not accept this link any more: the account has to be linked again.",
    retryAfterMs: null,
  },
};
/** The code for an outdated version. */
export const VERSION_REFUSED = 405;

const DETAILS: Readonly<Record<CloseReason["kind"], string>> = {
  asked: "The connection was closed on request.",
  restart: "The network asked to connect again.",
  replaced: "Another client took over this link.",
  logged_out: "The network says that the link is gone.",
  link_expired: "Nobody scanned the QR in time.",
  refused: "WhatsApp refused the connection.",
  lost: "The connection to the network was lost.",
  unavailable: "The network is not available now.",
  untrusted: "The server did not prove that it is the network's: its certificates are not valid.",
};
const REMOVED = "This device was removed from the account's linked devices.";
const FORGED_LINK = "The linking phone did not prove its identity: its signature is not valid.";

/**
 * The beginnings of the library's messages for invalid certificates in the handshake, and for invalid signatures of a
 * link.
 */
const BAD_CERTIFICATE = /^(invalid noise|noise (intermediate )?certificate|certification match failed)/;
const BAD_LINK = /^(Invalid account signature|Failed to verify account signature)/;

/** The beginning of the library's message for a connection that was never made, with the system's word for why. */
const NOT_REACHED = /^WebSocket Error \((?:connect|getaddrinfo) ([A-Z_]+)/;

/** Returns a reason with the sentence for its kind. */
export function closeReason(kind: CloseReason["kind"], code: number | null = null): CloseReason {
  return { kind, code, detail: DETAILS[kind] };
}

/** What a refused code means, by the network's code. 400 is also the answer to a number that asks too often. */
const CODE_REFUSALS: Readonly<Record<number, string>> = {
  400: "WhatsApp gives no code for this number: it is not valid, or has asked too often",
  403: "WhatsApp does not let this number be linked by code",
  429: "WhatsApp gives this number no more codes for now: link by QR, or wait some hours",
  452: "WhatsApp wants this number to be linked by QR",
};

/** The reason for a pairing code that the network refused. */
export function codeRefused({ code, backOffS }: { code: number; backOffS: number | null }): CloseReason {
  const why = CODE_REFUSALS[code] ?? "WhatsApp gives no code for this number";
  const detail = backOffS === null
    ? `${why} (error ${code}).`
    : `${why} (error ${code}); it may ask again in ${Math.ceil(backOffS / 60)} min.`;
  return { kind: "refused", code, detail, retryAfterMs: null };
}

/** The reason for a code that only a person may replace. */
export function codeExpired(): CloseReason {
  return { kind: "refused", code: null, detail: "The code has expired: ask for a new one.", retryAfterMs: null };
}

/** Returns the reason if the error says that the other end failed to prove its identity; otherwise null. */
export function distrustOf(error: unknown): CloseReason | null {
  const message = error instanceof Error ? error.message : "";
  if (error instanceof UntrustedServer || BAD_CERTIFICATE.test(message)) return closeReason("untrusted");
  return BAD_LINK.test(message) ? { ...closeReason("untrusted"), detail: FORGED_LINK } : null;
}

/**
 * Reads the error with which the library ended. The library also assigns codes of its own to socket failures (428 for a
 * dropped one), so a code counts only if the network sent it: in a stream error or a connection failure.
 */
export function reasonOf(error: unknown): CloseReason {
  const message = error instanceof Error ? error.message : "";
  const code = statusOf(error);
  const distrust = distrustOf(error);
  if (distrust) return distrust;
  const unreached = NOT_REACHED.exec(message)?.[1];
  if (unreached) return { ...closeReason("lost"), detail: `WhatsApp cannot be reached (${unreached}).` };
  if (code === null || !/^(Stream Errored|Connection Failure)/.test(message)) return closeReason("lost");
  if (isRemoval(error)) return { ...closeReason("logged_out", code), detail: REMOVED };
  const refusal = REFUSALS[code];
  if (!refusal) return closeReason(KINDS[code] ?? "unavailable", code);
  return {
    kind: "refused",
    code,
    detail: `${refusal.detail.slice(0, -1)} (error ${code}).`,
    retryAfterMs: refusal.retryAfterMs === null ? null : Math.max(refusal.retryAfterMs, banSeconds(error) * 1000),
  };
}

/**
 * Whether the phone has removed the device. The network may leave off the code, and the library then takes the error for
 * another client that took over (440).
 */
function isRemoval(error: unknown): boolean {
  const node = error instanceof Error && "data" in error ? error.data as Partial<BinaryNode> | null : null;
  return node?.tag === "conflict" && node.attrs?.type === "device_removed";
}

/**
 * The duration of a ban in seconds; 0 if the refusal gives no end. The error's data are the attributes of its stanza.
 */
function banSeconds(error: unknown): number {
  const data = error instanceof Error && "data" in error ? error.data : null;
  return typeof data === "object" && data !== null && "expire" in data && Number(data.expire) || 0;
}
