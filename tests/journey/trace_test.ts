/** Traces of a message's way, as a collector of OpenTelemetry gets them from a gateway that was started with them on. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { traceIdOf } from "../../src/base/trace.ts";
import { answering, Receiver } from "../support/receiver.ts";
import { openStage, withStage } from "../support/stage.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

const LINE = "4915200000061";
const ANA = "4917000000061";
const STEPS = ["message.accept", "message.queue", "message.send", "message.webhook"];

interface Span {
  traceId: string;
  name: string;
  /** Nanoseconds since 1970. */
  from: bigint;
  to: bigint;
  attributes: Record<string, string>;
}

/** The spans that the collector has got, of any export. */
function spansAt(collector: Receiver): Span[] {
  return collector.requests.filter(({ path }) => path === "/v1/traces").flatMap(({ body }) =>
    JSON.parse(body).resourceSpans.flatMap((of: Json) => of.scopeSpans).flatMap(({ spans }: Json) => spans)
  ).map(({ traceId, name, startTimeUnixNano, endTimeUnixNano, attributes }: Json) => ({
    traceId,
    name,
    from: BigInt(startTimeUnixNano),
    to: BigInt(endTimeUnixNano),
    attributes: Object.fromEntries(attributes.map(({ key, value }: Json) => [key, Object.values(value)[0]])),
  }));
}

Deno.test({
  name: "a message's way is one trace: accepted, waiting, sent, reported to a webhook",
  // An executable has tracing compiled in or not (docs/operate.md).
  ignore: Deno.env.has("PALOMA_EXECUTABLE"),
  async fn() {
    const collector = await Receiver.start(answering(200));
    const env = {
      OTEL_DENO: "true",
      OTEL_DENO_CONSOLE: "ignore",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
      OTEL_BSP_SCHEDULE_DELAY: "100",
    };
    try {
      await withStage(() => openStage({ env }), async (stage) => {
        const line = await stage.linkLine(LINE);
        await stage.addPhone(ANA);
        const client = await subscribe(stage, { events: ["message.sent"] });
        const first = await stage.sendText(line, ANA, "in one trace");
        const second = await stage.sendText(line, ANA, "in another");
        await client.event("message.sent", ({ data }) => data.messageId === second);
        for (const messageId of [first, second]) {
          const trace = await until(() => {
            const spans = spansAt(collector).filter(({ traceId }) => traceId === traceIdOf(messageId));
            return Promise.resolve(STEPS.every((step) => spans.some(({ name }) => name === step)) ? spans : null);
          }, `the trace of ${messageId}`);
          assert.deepEqual(trace.map(({ name }) => name).sort(), STEPS);
          const [accept, queue, send, webhook] = STEPS.map((step) => trace.find(({ name }) => name === step)!);
          assert.ok(accept!.from <= queue!.from && queue!.to <= send!.from && send!.from <= webhook!.from);
          assert.ok(trace.every(({ from, to }) => from <= to && from > 10n ** 18n), "times are nanoseconds since 1970");
          assert.deepEqual(
            [accept!.attributes["paloma.message_id"], webhook!.attributes.event, Number(webhook!.attributes.status)],
            [messageId, "message.sent", 200],
          );
        }
        await client.end();
        const collected = collector.requests.map(({ body }) => body).join();
        assert.ok(!collected.includes("in one trace") && !collected.includes(ANA), "a trace holds texts or numbers");
      });
    } finally {
      await collector.close();
    }
  },
});
