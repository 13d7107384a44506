/**
 * The gateway's counters and gauges, in the text format of Prometheus. Labels are few and bounded: no ids, no paths.
 */
import counter from "prom-client/lib/counter.js";
import gauge from "prom-client/lib/gauge.js";
import histogram from "prom-client/lib/histogram.js";
import registry from "prom-client/lib/registry.js";

/** The package's own entry loads OpenTelemetry too, for process metrics that are not used here. */
const prom: Pick<typeof import("prom-client"), "Counter" | "Gauge" | "Histogram" | "Registry"> = {
  Counter: counter,
  Gauge: gauge,
  Histogram: histogram,
  Registry: registry,
};

/** Upper bounds in seconds: from a cached answer to a check that waits for the network. */
const LATENCY_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export type Metrics = ReturnType<typeof makeMetrics>;

export function makeMetrics() {
  const registry = new prom.Registry();
  const registers = [registry];
  const names = () => registry.getMetricsAsArray().map(({ name }) => name);
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new prom.Counter<Label>({ name, help, labelNames, registers });
  const seconds = (name: string, help: string) =>
    new prom.Histogram({ name, help, buckets: LATENCY_BOUNDS, registers });
  return {
    requests: counter("paloma_http_requests_total", "HTTP requests by route and status", ["method", "route", "status"]),
    requestSeconds: seconds("paloma_http_request_duration_seconds", "Time to answer HTTP requests"),
    accepted: counter("paloma_messages_accepted_total", "Messages accepted for sending", ["kind"]),
    /** `sent`, or the code of the error. */
    ended: counter(
      "paloma_messages_ended_total",
      "Messages that came to their end, by outcome: sent, or the code of the error",
      ["outcome"],
    ),
    ackSeconds: seconds(
      "paloma_message_ack_seconds",
      "Time from the departure of a message to the acknowledgement of the network",
    ),
    /** `committed`, `conflict`, or the code of the StoreError. */
    commits: counter("paloma_store_commits_total", "Commits to the store, by outcome", ["outcome"]),
    commitSeconds: seconds("paloma_store_commit_seconds", "Time that commits to the store take"),
    /** `2xx` to `5xx`, or the code of the EgressError. */
    webhookAttempts: counter(
      "paloma_webhook_attempts_total",
      "Attempts to deliver an event to a webhook, by outcome: the class of the status, or what went wrong",
      ["outcome"],
    ),
    undecryptable: counter(
      "paloma_messages_undecryptable_total",
      "Incoming messages that could not be decrypted when they were reported",
    ),
    /** As many labels as the adapter distinguishes. */
    strays: counter(
      "paloma_network_stanzas_unhandled_total",
      "Stanzas of the messaging network that are acknowledged and not handled",
      ["tag", "type"],
    ),
    refusedWrites: counter("paloma_refused_writes_total", "Writes under an old lease: nothing of them was written"),
    /** Adds a gauge whose value is read at each scrape, and omitted if it cannot be read. */
    gauge(name: string, help: string, read: () => number | Promise<number>): void {
      new prom.Gauge({
        name,
        help,
        registers,
        async collect() {
          this.set(await read());
        },
      });
    },
    /** As `gauge`, with a value for each value of a label. */
    gaugeBy(
      label: string,
      { name, help, read }: { name: string; help: string; read: () => Readonly<Record<string, number>> },
    ): void {
      new prom.Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          this.reset();
          for (const [value, count] of Object.entries(read())) this.set({ [label]: value }, count);
        },
      });
    },
    names,
    /** Resolves to the text for `GET /metrics`. */
    async render(): Promise<string> {
      // One by one: `registry.metrics()` fails as a whole when one cannot be read.
      const texts = await Promise.allSettled(names().map((name) => registry.getSingleMetricAsString(name)));
      return texts.flatMap((text) => text.status === "fulfilled" ? [text.value] : []).join("\n") + "\n";
    },
  };
}
