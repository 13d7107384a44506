/**
 * Traces a message's way with the runtime's own OpenTelemetry support (docs/operate.md). The trace id is the
 * message's id, so nothing is stored for it, and any process can add the next step.
 */

/** Where the API looks for a tracer; the runtime registers its own there if started with `OTEL_DENO=true`. */
const isOn = Symbol.for("opentelemetry.js.api.1") in globalThis;
const api = isOn ? await import("@opentelemetry/api") : null;
const tracer = api?.trace.getTracer("paloma");

/** The digits of a ULID in order of value. */
const LETTERS = "0123456789abcdefghjkmnpqrstvwxyz";

interface Step {
  name: "message.accept" | "message.queue" | "message.send" | "message.webhook";
  /** Unix ms. */
  from: number;
  to: number;
  /** Why it failed; null if it succeeded. */
  error?: string | null;
  attributes?: Readonly<Record<string, string | number>>;
}

/** Reports a finished step of a message. Does nothing if tracing is off or the id is not a message's. */
export function traceStep(messageId: unknown, { name, from, to, error, attributes }: Step): void {
  if (!api || !tracer || typeof messageId !== "string" || !messageId.startsWith("msg_")) return;
  const traceId = traceIdOf(messageId);
  // All steps are children of one span for the message, which is never reported itself.
  const message = { traceId, spanId: traceId.slice(16), traceFlags: api.TraceFlags.SAMPLED, isRemote: true };
  const span = tracer.startSpan(
    name,
    { startTime: from, attributes: { "paloma.message_id": messageId, ...attributes } },
    api.trace.setSpanContext(api.ROOT_CONTEXT, message),
  );
  if (error) span.setStatus({ code: api.SpanStatusCode.ERROR, message: error });
  span.end(to);
}

/** Returns the id's 128 bits in hexadecimal. */
export function traceIdOf(messageId: string): string {
  const bits = [...messageId.slice("msg_".length).toLowerCase()]
    .reduce((value, letter) => value * 32n + BigInt(LETTERS.indexOf(letter)), 0n);
  return bits.toString(16).padStart(32, "0");
}
