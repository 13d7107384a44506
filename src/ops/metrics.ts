/**
 * Counters of what the gateway does and gauges of what there is, in the text format of Prometheus. Labels are few and
 * bounded: no ids, no paths.
 */
import { Counter, Gauge, Histogram, Registry } from "prom-client";

export interface Metrics {
  requests: Counter<"method" | "route" | "status">;
  requestSeconds: Histogram;
  accepted: Counter<"kind">;
  /** Labels as many as the adapter tells apart. */
  strays: Counter<"tag" | "type">;
  /** A value that is read when somebody asks; one that cannot be read then is left out. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void;
  /** The same with a value for each value of a label. */
  gaugeBy(label: string, gauge: { name: string; help: string; read: () => Readonly<Record<string, number>> }): void;
  /** The whole text, for `GET /metrics`. */
  render(): Promise<string>;
}

/** Upper bounds in seconds: from a cached answer to a check that waits for the network. */
const LATENCY_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export function makeMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  return {
    requests: new Counter({
      name: "paloma_http_requests_total",
      help: "HTTP requests by route and status",
      labelNames: ["method", "route", "status"],
      registers,
    }),
    requestSeconds: new Histogram({
      name: "paloma_http_request_duration_seconds",
      help: "Time to answer HTTP requests",
      buckets: LATENCY_BOUNDS,
      registers,
    }),
    accepted: new Counter({
      name: "paloma_messages_accepted_total",
      help: "Messages accepted for sending",
      labelNames: ["kind"],
      registers,
    }),
    strays: new Counter({
      name: "paloma_network_stanzas_unhandled_total",
      help: "Stanzas of the messaging network that are acknowledged and not handled",
      labelNames: ["tag", "type"],
      registers,
    }),
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          this.set(await read());
        },
      });
    },
    gaugeBy(label, { name, help, read }) {
      new Gauge({
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
    async render() {
      // One by one: `registry.metrics()` fails as a whole when one cannot be read.
      const names = registry.getMetricsAsArray().map(({ name }) => name);
      const texts = await Promise.allSettled(names.map((name) => registry.getSingleMetricAsString(name)));
      return texts.flatMap((text) => text.status === "fulfilled" ? [text.value] : []).join("\n") + "\n";
    },
  };
}
