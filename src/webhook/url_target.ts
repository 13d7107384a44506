/**
 * A URL as the target of a webhook: an attempt is one signed POST. With the handshake of the official API a target shows
 * that it expects requests, by giving back a challenge.
 */
import { traceStep } from "../base/trace.ts";
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch, SafeResponse } from "../egress/safe_fetch.ts";
import { invalid } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { SealError } from "../store/seal.ts";
import { type AttemptOutcome, type Handover, RETRY_AFTER_MAX_MS, type Target } from "./target.ts";
import type { DeliveryAttempt } from "./webhook.ts";

interface UrlTargetDeps {
  safeFetch: Pick<SafeFetch, "fetch" | "vet">;
  runtime: Pick<Runtime, "clock" | "random">;
}

/** What every request allows: HTTPS, no redirect, and 10 s for the whole exchange (spec, Limits). */
const ALLOWED = { schemes: ["https:"], maxRedirects: 0, timeoutMs: 10_000 } as const;
/** How much of a response is read and discarded before the connection is closed. */
const MAX_ANSWER_BYTES = 16 * 1024;

export function urlTarget(deps: UrlTargetDeps): Target {
  return {
    async vet(url) {
      try {
        await deps.safeFetch.vet(url, ALLOWED.schemes);
      } catch (error) {
        throw error instanceof EgressError ? invalid("url", error.message) : error;
      }
    },
    verify: (url, verifyToken) => shakeHands(deps, { url, verifyToken }),
    attempt: (handover) => post(deps, handover),
  };
}

async function post(
  { safeFetch, runtime: { clock } }: UrlTargetDeps,
  { url, open, event, body: text, format, signal }: Handover,
): Promise<AttemptOutcome> {
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
      ...ALLOWED,
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

/** Throws Problem validation_failed unless the target gives the challenge back. */
async function shakeHands(
  { safeFetch, runtime: { random } }: UrlTargetDeps,
  { url, verifyToken }: { url: string; verifyToken: string },
): Promise<void> {
  // Some frameworks take only a number.
  const challenge = String(random.between(10 ** 8, 2 ** 31 - 1));
  const asked = new URL(url);
  asked.searchParams.set("hub.mode", "subscribe");
  asked.searchParams.set("hub.challenge", challenge);
  asked.searchParams.set("hub.verify_token", verifyToken);
  let answer: string;
  try {
    const { status, body } = await safeFetch.fetch({
      url: asked.href,
      method: "GET",
      ...ALLOWED,
      maxBytes: MAX_ANSWER_BYTES,
    });
    answer = (await new Response(body).text()).trim();
    if (status !== 200) throw invalid("url", `did not verify: it answered the challenge with ${status}`);
  } catch (error) {
    if (error instanceof EgressError) throw invalid("url", `did not verify: ${error.message}`);
    throw error;
  }
  // A framework may have written it as JSON.
  if (answer.replaceAll('"', "") !== challenge) throw invalid("url", "did not verify: it did not answer the challenge");
}
