/**
 * The gateway's metrics, in the text format of Prometheus, and wrappers that measure parts which know nothing of them.
 * Labels are few and bounded: no ids, no paths. `gauges.ts` adds what is read at each request.
 */
import counter from "prom-client/lib/counter.js";
import gauge from "prom-client/lib/gauge.js";
import histogram from "prom-client/lib/histogram.js";
import registry from "prom-client/lib/registry.js";
import { EgressError } from "../egress/egress_error.ts";
import type { SafeFetch } from "../egress/safe_fetch.ts";
import type { EventLog } from "../event/event_log.ts";
import { hasEnded, type Message } from "../message/message.ts";
import type { Clock } from "../runtime.ts";
import { StoreError } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";

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
      "Messages sent or failed, by outcome: sent, or the code of the error",
      ["outcome"],
    ),
    ackSeconds: seconds(
      "paloma_message_ack_seconds",
      "Time from sending a message to the acknowledgement of the network",
    ),
    /** `committed`, `conflict`, or the code of the StoreError. */
    commits: counter("paloma_store_commits_total", "Commits to the store, by outcome", ["outcome"]),
    commitSeconds: seconds("paloma_store_commit_seconds", "Duration of commits to the store"),
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
    setAside: counter(
      "paloma_messages_set_aside_total",
      "Incoming messages that were set aside because the process ended twice while it read them",
    ),
    /** As many labels as the adapter distinguishes. */
    unknownStanzas: counter(
      "paloma_network_stanzas_unhandled_total",
      "Stanzas of the messaging network that are acknowledged and not handled",
      ["tag", "type"],
    ),
    refusedWrites: counter(
      "paloma_refused_writes_total",
      "Writes refused because their lease was old; nothing was written",
    ),
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

/** Returns a store that counts its commits by outcome and measures their duration. */
export function measuredStore(kv: ChunkedKv, metrics: Metrics, clock: Clock): ChunkedKv {
  return {
    ...kv,
    async commit(change, options) {
      const begun = clock.now();
      try {
        const version = await kv.commit(change, options);
        metrics.commits.inc({ outcome: version === null ? "conflict" : "committed" });
        return version;
      } catch (error) {
        metrics.commits.inc({ outcome: error instanceof StoreError ? error.code : "mistake" });
        throw error;
      } finally {
        if (!options?.lingerUntil) metrics.commitSeconds.observe((clock.now() - begun) / 1000);
      }
    },
  };
}

/** How messages end, and how long the network takes to acknowledge them: called with each as it has moved. */
export function measuredMoves(metrics: Metrics, clock: Clock): (message: Message, acknowledgedAt?: number) => void {
  /** When each message on its way departed; at most one a line. */
  const departures = new Map<string, number>();
  return ({ id, status, error }, acknowledgedAt) => {
    const leftAt = departures.get(id);
    if (status === "processing") departures.set(id, clock.now());
    else departures.delete(id);
    if (!hasEnded({ status })) return;
    metrics.ended.inc({ outcome: error?.code ?? "sent" });
    if (acknowledgedAt === undefined || leftAt === undefined) return;
    metrics.ackSeconds.observe(Math.max(0, acknowledgedAt - leftAt) / 1000);
  };
}

/** Returns a `SafeFetch` that counts webhook attempts by outcome. */
export function measuredWebhooks(safeFetch: SafeFetch, metrics: Metrics): SafeFetch {
  return {
    ...safeFetch,
    async fetch(request) {
      try {
        const response = await safeFetch.fetch(request);
        metrics.webhookAttempts.inc({ outcome: `${Math.floor(response.status / 100)}xx` });
        return response;
      } catch (error) {
        metrics.webhookAttempts.inc({ outcome: error instanceof EgressError ? error.code : "failed" });
        throw error;
      }
    },
  };
}

/** Returns an event log that counts messages reported although they could not be decrypted. */
export function measuredEvents(events: EventLog, metrics: Metrics): EventLog {
  return {
    ...events,
    append(change, event) {
      if (event.event === "message.received" && event.data.details?.undecryptable === true) metrics.undecryptable.inc();
      return events.append(change, event);
    },
  };
}
