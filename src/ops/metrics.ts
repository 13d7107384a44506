/**
 * Counters of what the gateway does and gauges of what there is, in the text format of Prometheus. Labels are few and
 * bounded: no ids, no paths.
 */
import { makeCounter, makeGauge, makeHistogram, type Metric } from "./prometheus.ts";

/** Upper bounds in seconds: from a cached answer to a check that waits for the network. */
const LATENCY_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export type Metrics = ReturnType<typeof makeMetrics>;

export function makeMetrics() {
  const metrics: Metric[] = [];
  const added = <M extends Metric>(metric: M): M => (metrics.push(metric), metric);
  const counter = <Label extends string>(name: string, help: string, labels: Label[] = []) =>
    added(makeCounter({ name, help }, labels));
  const seconds = (name: string, help: string) => added(makeHistogram({ name, help }, LATENCY_BOUNDS));
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
    /** A value that is read at each scrape, and left out when it cannot be read. */
    gauge(name: string, help: string, read: () => number | Promise<number>): void {
      added(makeGauge({ name, help }, read));
    },
    /** The same with a value for each value of a label. */
    gaugeBy(
      label: string,
      { read, ...described }: { name: string; help: string; read: () => Readonly<Record<string, number>> },
    ): void {
      added(makeGauge({ ...described, label }, read));
    },
    names: () => metrics.map(({ name }) => name),
    /** The whole text, for `GET /metrics`. */
    async render(): Promise<string> {
      const texts = await Promise.allSettled(metrics.map((metric) => metric.text()));
      return texts.flatMap((text) => text.status === "fulfilled" ? [text.value] : []).join("\n") + "\n";
    },
  };
}
