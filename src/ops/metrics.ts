/**
 * Counters of what the gateway does and gauges of what there is, in the text format of Prometheus. Labels are few and
 * bounded: no ids, no paths.
 */

export interface Counter<Labels extends string = never> {
  add(labels: Readonly<Record<Labels, string>>, amount?: number): void;
}

export interface Histogram {
  observe(value: number): void;
}

export interface Metrics {
  requests: Counter<"method" | "route" | "status">;
  requestSeconds: Histogram;
  accepted: Counter<"kind">;
  /** A value that is read when somebody asks; one that cannot be read then is left out. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void;
  /** The same with a value for each value of a label. */
  gaugeBy(label: string, gauge: { name: string; help: string; read: () => Readonly<Record<string, number>> }): void;
  /** The whole text, for `GET /metrics`. */
  render(): Promise<string>;
}

/** Upper bounds in seconds: from a cached answer to a check that waits for the network. */
const LATENCY_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

type Family = () => Promise<string[]> | string[];

export function makeMetrics(): Metrics {
  const families: Family[] = [];
  return {
    requests: counter(families, "paloma_http_requests_total", "HTTP requests by route and status"),
    requestSeconds: histogram(families, "paloma_http_request_duration_seconds", "Time to answer HTTP requests"),
    accepted: counter(families, "paloma_messages_accepted_total", "Messages accepted for sending"),
    gauge(name, help, read) {
      families.push(async () => [...head(name, help, "gauge"), `${name} ${await read()}`]);
    },
    gaugeBy(label, { name, help, read }) {
      families.push(() => [
        ...head(name, help, "gauge"),
        ...Object.entries(read()).map(([value, n]) => `${name}{${label}="${escape(value)}"} ${n}`),
      ]);
    },
    async render() {
      const texts = await Promise.all(families.map((family) => Promise.try(family).catch(() => [])));
      return texts.flat().join("\n") + "\n";
    },
  };
}

function counter<Labels extends string>(families: Family[], name: string, help: string): Counter<Labels> {
  const values = new Map<string, { labels: Readonly<Record<string, string>>; count: number }>();
  families.push(() => [
    ...head(name, help, "counter"),
    ...[...values.values()].map(({ labels, count }) => `${name}{${labelText(labels)}} ${count}`),
  ]);
  return {
    add(labels, amount = 1) {
      const key = Object.values(labels).join("\n");
      const value = values.get(key);
      if (value) value.count += amount;
      else values.set(key, { labels, count: amount });
    },
  };
}

function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels).map(([label, value]) => `${label}="${escape(value)}"`).join(",");
}

function histogram(families: Family[], name: string, help: string): Histogram {
  const counts = LATENCY_BOUNDS.map(() => 0);
  let count = 0;
  let sum = 0;
  families.push(() => [
    ...head(name, help, "histogram"),
    ...LATENCY_BOUNDS.map((bound, i) => `${name}_bucket{le="${bound}"} ${counts[i]}`),
    `${name}_bucket{le="+Inf"} ${count}`,
    `${name}_sum ${sum}`,
    `${name}_count ${count}`,
  ]);
  return {
    observe(value) {
      count++;
      sum += value;
      // Buckets are cumulative.
      LATENCY_BOUNDS.forEach((bound, i) => value <= bound && counts[i]!++);
    },
  };
}

function head(name: string, help: string, type: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function escape(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
