/** One attempt to deliver one event: the request, its outcome, and when the next attempt is due. */
import { traceStep } from "../base/trace.ts";
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch, SafeResponse } from "../egress/safe_fetch.ts";
import type { LoggedEvent } from "../event/event.ts";
import type { Runtime } from "../runtime.ts";
import { SealError } from "../store/seal.ts";
import type { Format } from "./format.ts";
import type { DeliveryAttempt, Opened } from "./webhook.ts";

/** Time limit of the whole exchange (spec, Limits). */
const DELIVERY_TIMEOUT_MS = 10_000;
/** Pauses before the second, third and fourth attempt (spec: up to 3 retries, exponential). */
const RETRY_DELAYS_MS = [5_000, 25_000, 120_000] as const;
/** Each pause varies by this much, so that a recovering receiver is not hit by all retries at once. */
const JITTER = 0.1;
/** The longest pause that a receiver can request. */
export const RETRY_AFTER_MAX_MS = 3_600_000;
/** How much of a response is read and discarded before the connection is closed. */
const MAX_ANSWER_BYTES = 16 * 1024;

/**
 * The outcome of an attempt. `gone`: the target asks not to be called again (410). `stopped`: the gateway is stopping.
 */
export type AttemptOutcome =
  | { kind: "delivered"; attempt: DeliveryAttempt }
  | { kind: "failed"; attempt: DeliveryAttempt; retryAfterMs: number | null }
  | { kind: "gone"; attempt: DeliveryAttempt }
  | { kind: "stopped" };

/** Makes one request. Never throws. `open` throws SealError if the secrets or headers cannot be unsealed. */
export async function attemptDelivery(
  { safeFetch, runtime }: { safeFetch: SafeFetch; runtime: Runtime },
  { url, open, event, body: text, format, signal }: {
    url: string;
    open: () => Opened;
    event: LoggedEvent;
    body: string;
    format: Pick<Format, "signatureHeaders">;
    signal: AbortSignal;
  },
): Promise<AttemptOutcome> {
  const { clock } = runtime;
  const at = clock.now();
  const body = new TextEncoder().encode(text);
  let status: number | null = null;
  const ended = (error: string | null): DeliveryAttempt => {
    const to = clock.now();
    const attributes = { event: event.event, event_id: event.id, ...(status === null ? {} : { status }) };
    traceStep("messageId" in event.data ? event.data.messageId : null, {
      name: "message.webhook",
      from: at,
      to,
      error,
      attributes,
    });
    return { at, status, durationMs: to - at, error };
  };
  try {
    const { secrets, headers } = open();
    const response = await safeFetch.fetch({
      url,
      method: "POST",
      headers: {
        ...headers,
        "content-type": "application/json",
        "user-agent": headers["user-agent"] ?? "Paloma-Webhook/1",
        ...format.signatureHeaders({ id: event.id, at, body, secrets }),
      },
      body,
      schemes: ["https:"],
      maxRedirects: 0,
      timeoutMs: DELIVERY_TIMEOUT_MS,
      maxBytes: MAX_ANSWER_BYTES,
      reuse: true,
      signal,
    });
    status = response.status;
    await discard(response);
    if (status >= 200 && status <= 299) return { kind: "delivered", attempt: ended(null) };
    const attempt = ended(`the target answered ${status}`);
    if (status === 410) return { kind: "gone", attempt };
    return { kind: "failed", attempt, retryAfterMs: retryAfterMs(response.headers.get("retry-after"), clock.now()) };
  } catch (error) {
    if (error instanceof EgressError && error.code === "aborted") return { kind: "stopped" };
    return { kind: "failed", attempt: ended(reasonOf(error)), retryAfterMs: null };
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof EgressError) return error.message;
  if (error instanceof SealError) {
    return "the secret or a header cannot be read (was PALOMA_SECRET_KEY changed?): rotate the secret, set the headers again";
  }
  return "the request could not be made";
}

/** Reads the response to its end or limit. Once the status is known, only a timeout makes the attempt a failure. */
async function discard(response: SafeResponse): Promise<void> {
  try {
    await response.discard();
  } catch (error) {
    if (error instanceof EgressError && (error.code === "timeout" || error.code === "aborted")) throw error;
  }
}

/** Parses Retry-After, which holds seconds or a date (RFC 9110, 10.2.3); null if it is missing or meaningless. */
function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isFinite(ms) && ms > 0 ? Math.min(ms, RETRY_AFTER_MAX_MS) : null;
}

/** Returns when the attempt after the `number`th of a series is due, Unix ms; null if that was the last. */
export function nextAttemptAt(
  number: number,
  { retryAfterMs, runtime }: { retryAfterMs: number | null; runtime: Runtime },
): number | null {
  const delayMs = RETRY_DELAYS_MS[number - 1];
  if (delayMs === undefined) return null;
  const spread = Math.round(delayMs * JITTER);
  const pauseMs = delayMs + runtime.random.between(-spread, spread);
  return runtime.clock.now() + Math.max(pauseMs, retryAfterMs ?? 0);
}
