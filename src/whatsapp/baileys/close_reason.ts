/** Why a connection ended, from what the library says: the network's close codes. */
import type { CloseReason } from "../connection.ts";

/** What a Boom carries, without the package that makes it. */
interface CodedError extends Error {
  output?: { statusCode?: number };
}

/**
 * What the codes of the network mean.
 *
 * | code               | kind        | then                                    |
 * |--------------------|-------------|-----------------------------------------|
 * | 515                | restart     | connect again at once                   |
 * | 440                | replaced    | another client took over: stay away     |
 * | 401, 403           | logged_out  | the link is gone                        |
 * | 408, 428, 500, 503 | unavailable | back off; so with any code not known    |
 * | none               | lost        | the socket dropped or went silent       |
 */
const KINDS: Readonly<Record<number, CloseReason["kind"]>> = {
  401: "logged_out",
  403: "logged_out",
  440: "replaced",
  515: "restart",
};

const DETAILS: Readonly<Record<CloseReason["kind"], string>> = {
  asked: "The connection was closed on request.",
  restart: "The network asked to connect again.",
  replaced: "Another client took over this link.",
  logged_out: "The network says that the link is gone.",
  link_expired: "Nobody scanned the QR in time.",
  lost: "The connection to the network was lost.",
  unavailable: "The network is not available now.",
};

/** A reason with the sentence that belongs to its kind. */
export function closeReason(kind: CloseReason["kind"], code: number | null = null): CloseReason {
  return { kind, code, detail: DETAILS[kind] };
}

/**
 * Reads the error that the library ended with. It gives its own codes to what the socket did (428 for a dropped
 * one), so a code counts only when the network sent it: in a stream error or a connection failure.
 */
export function reasonOf(error: unknown): CloseReason {
  const { message = "", output } = (error ?? {}) as Partial<CodedError>;
  const code = output?.statusCode;
  if (code === undefined || !/^(Stream Errored|Connection Failure)/.test(message)) return closeReason("lost");
  return closeReason(KINDS[code] ?? "unavailable", code);
}
