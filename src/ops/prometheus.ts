/** Metrics and their text, as Prometheus reads it (text format 0.0.4). */

export interface Metric {
  readonly name: string;
  /** Rejects when a value cannot be read. */
  text(): Promise<string>;
}

interface Described {
  name: string;
  help: string;
}

/** Values by their labels as they are written; the name may go on before these, as in `…_bucket{le="1"}`. */
type Series = Iterable<readonly [string, number]>;

/** Counts events; each combination of labels from its first on. */
export function makeCounter<Label extends string>(described: Described, labels: readonly Label[] = []) {
  const counts = new Map<string, number>(labels.length === 0 ? [["", 0]] : []);
  return {
    name: described.name,
    inc(values: Partial<Record<Label, string>> = {}, by = 1): void {
      const series = written(labels.map((label) => [label, values[label] ?? ""]));
      counts.set(series, (counts.get(series) ?? 0) + by);
    },
    text: () => Promise.resolve(textOf("counter", described, counts)),
  };
}

/** Counts observations up to each of the bounds, which ascend. */
export function makeHistogram(described: Described, bounds: readonly number[]) {
  const counts = new Array<number>(bounds.length).fill(0);
  let all = 0;
  let sum = 0;

  function* series(): Series {
    let upTo = 0;
    for (const [i, bound] of bounds.entries()) yield [`_bucket{le="${bound}"}`, upTo += counts[i]!];
    yield ['_bucket{le="+Inf"}', all];
    yield ["_sum", sum];
    yield ["_count", all];
  }

  return {
    name: described.name,
    observe(value: number): void {
      const i = bounds.findIndex((bound) => value <= bound);
      if (i >= 0) counts[i]!++;
      all++;
      sum += value;
    },
    text: () => Promise.resolve(textOf("histogram", described, series())),
  };
}

/** What there is, read at each scrape: one value, or one for each value of a label. */
export function makeGauge(
  { label, ...described }: Described & { label?: string },
  read: () => number | Readonly<Record<string, number>> | Promise<number>,
): Metric {
  return {
    name: described.name,
    async text() {
      const values = await read();
      const series = typeof values === "number"
        ? [["", values] as const]
        : Object.entries(values).map(([value, count]) => [written([[label ?? "", value]]), count] as const);
      return textOf("gauge", described, series);
    },
  };
}

function textOf(type: string, { name, help }: Described, series: Series): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
  for (const [labels, value] of series) lines.push(`${name}${labels} ${value}`);
  return lines.join("\n");
}

function written(labels: readonly (readonly [string, string])[]): string {
  if (labels.length === 0) return "";
  return `{${labels.map(([label, value]) => `${label}="${value.replaceAll(/[\\"\n]/g, escaped)}"`).join()}}`;
}

const escaped = (sign: string) => sign === "\n" ? "\\n" : `\\${sign}`;
