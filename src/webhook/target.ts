/**
 * The port to where a webhook's events go. Today that is a URL (`url_target.ts`).
 *
 * Contract, kept by every kind of target and proved by `tests/contract/target_contract.ts`:
 * - An attempt never throws and ends in time, whatever the target does. It follows no referral to another address.
 * - What arrives is the event's body as given, with the headers that the format signs it with, and the webhook's own.
 * - Only the target's acceptance is `delivered`. When the signal aborts, the attempt is `stopped`, and nothing is known.
 * - `vet` and `verify` change nothing.
 */
import type { LoggedEvent } from "../event/event.ts";
import type { Format } from "./format.ts";
import type { DeliveryAttempt, Opened } from "./webhook.ts";

/** The longest pause that a target can ask for. */
export const RETRY_AFTER_MAX_MS = 3_600_000;

/**
 * The outcome of an attempt. `gone`: the target asks not to be called again (410). `stopped`: the gateway is stopping.
 */
export type AttemptOutcome =
  | { kind: "delivered"; attempt: DeliveryAttempt }
  /** `retryAfterMs`: how long the target asked to be left alone; null if it did not. */
  | { kind: "failed"; attempt: DeliveryAttempt; retryAfterMs: number | null }
  | { kind: "gone"; attempt: DeliveryAttempt }
  | { kind: "stopped" };

/** What one attempt hands over. */
export interface Handover {
  url: string;
  /** Throws SealError if the secrets or headers cannot be unsealed. */
  open: () => Opened;
  event: LoggedEvent;
  body: string;
  format: Pick<Format, "signatureHeaders">;
  signal: AbortSignal;
}

export interface Target {
  /** Throws Problem validation_failed at `url` unless events may be delivered there. */
  vet(url: string): Promise<void>;
  /** Has the target prove that it expects events. Throws Problem validation_failed at `url` if it does not. */
  verify(url: string, verifyToken: string): Promise<void>;
  /** Makes one attempt. Never throws. */
  attempt(handover: Handover): Promise<AttemptOutcome>;
}
