/**
 * How often a message is tried, and what becomes of one whose attempt was not acknowledged (promises 2 and 3):
 *
 * | the network …                   | the message                                                      |
 * |---------------------------------|------------------------------------------------------------------|
 * | refused it                      | fails, for good                                                  |
 * | did not answer                  | goes again, at most twice: it may have arrived                   |
 * | or its upload is in trouble     | goes again after a while, at most twice                          |
 * | lets the account start no chats | waits, no attempt burnt, and the pause follows                   |
 * | was not asked: the line holds   | waits, no attempt burnt                                          |
 */
import type { MessageError } from "../message/message.ts";
import type { SendOutcome } from "../whatsapp/outgoing.ts";

/** The first and two more. */
const MAX_ATTEMPTS = 3;
/** A message in whose company the process died this often is given up, or its line would never move again. */
const MAX_ATTEMPTS_WITH_CRASHES = 10;
/** Pauses before a second and a third attempt after passing trouble (upload, key query, a network that is busy). */
const RETRY_AFTER_MS = [2_000, 8_000];
/** After trouble with the store, or a connection that is open and yet holds. */
export const TROUBLE_PAUSE_MS = 1_000;
/** For so long the network is left alone, at most. */
export const LONGEST_REST_MS = Math.max(TROUBLE_PAUSE_MS, ...RETRY_AFTER_MS);

export const UNACKNOWLEDGED: MessageError = {
  code: "unacknowledged",
  message: "The network did not confirm it in three attempts; it may have arrived all the same.",
};

/** Whether a message that was on its way when the process died goes again. */
export function survivesCrash(attempts: number): boolean {
  return attempts < MAX_ATTEMPTS_WITH_CRASHES;
}

/** `restMs`: for so long the network is left alone. */
type Verdict =
  | { kind: "fails"; error: MessageError; restMs: 0 }
  | { kind: "goes_again"; restMs: number }
  /** `departed`: the network was asked, so that the pause follows. */
  | { kind: "waits"; departed: boolean; restMs: number };

/** What becomes of the message after so many attempts, this one included. */
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
      // It waits with the other cold ones, under its id.
      return { kind: "waits", departed: true, restMs: 0 };
    case "hold":
      return { kind: "waits", departed: false, restMs: TROUBLE_PAUSE_MS };
  }
}
