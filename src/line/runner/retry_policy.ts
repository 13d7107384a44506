/**
 * The retry policy: what becomes of a message whose attempt was not acknowledged (promises 2 and 3).
 *
 * | the network …                                | the message                                               |
 * |----------------------------------------------|-----------------------------------------------------------|
 * | refused the message                          | fails, for good                                           |
 * | did not answer                               | is sent again, at most twice: it may have arrived         |
 * | or the upload has a temporary problem        | is sent again after a back-off, at most twice             |
 * | forbids the account to start new chats       | waits, uses no attempt, and the plan's pause follows      |
 * | was not asked, because the connection holds  | waits, uses no attempt                                    |
 */
import type { MessageError } from "../../message/message.ts";
import type { SendOutcome } from "../../whatsapp/outgoing.ts";

/** The first attempt and two retries. */
const MAX_ATTEMPTS = 3;
/** A message during whose attempts the process died this often fails; otherwise it would block its line forever. */
const MAX_ATTEMPTS_WITH_CRASHES = 10;
/** Back-off before the second and third attempt after a temporary problem (upload, key query, busy network). */
const RETRY_AFTER_MS = [2_000, 8_000];
/** Back-off after an error of the store, or when the connection is open but cannot send yet (`hold`). */
export const TROUBLE_PAUSE_MS = 1_000;

/** The code of a message that the network refused because the account may start no new chats, and that waits. */
export const RESTRICTED = "account_restricted";

export const UNACKNOWLEDGED: MessageError = {
  code: "unacknowledged",
  message: "The network did not confirm it in three attempts; it may have arrived all the same.",
};

/** Returns whether a message that was on its way when the process died is sent again. */
export function survivesCrash(attempts: number): boolean {
  return attempts < MAX_ATTEMPTS_WITH_CRASHES;
}

/** `restMs` is the back-off before the line's next attempt. */
type Verdict =
  | { kind: "fails"; error: MessageError; restMs: 0 }
  | { kind: "goes_again"; restMs: number }
  /** `error`: the network was asked, so the attempt counts as a departure and the plan's pause follows. */
  | { kind: "waits"; error: MessageError | null; restMs: number };

/** Decides what becomes of the message. `attempts` includes the attempt that had this outcome. */
export function verdictOn(outcome: Exclude<SendOutcome, { kind: "sent" }>, attempts: number): Verdict {
  const isLast = attempts >= MAX_ATTEMPTS;
  switch (outcome.kind) {
    case "refused":
      return { kind: "fails", error: { code: outcome.code, message: outcome.detail }, restMs: 0 };
    case "unknown":
      return isLast ? { kind: "fails", error: UNACKNOWLEDGED, restMs: 0 } : { kind: "goes_again", restMs: 0 };
    case "retry": {
      if (!isLast) return { kind: "goes_again", restMs: RETRY_AFTER_MS[attempts - 1] ?? 0 };
      const message = `It could not be sent in ${MAX_ATTEMPTS} attempts: ${outcome.detail}`;
      return { kind: "fails", error: { code: "send_failed", message }, restMs: 0 };
    }
    case "restricted":
      // It waits with the other messages to new chats, under the same id.
      return { kind: "waits", error: { code: RESTRICTED, message: outcome.detail }, restMs: 0 };
    case "hold":
      return { kind: "waits", error: null, restMs: TROUBLE_PAUSE_MS };
  }
}
