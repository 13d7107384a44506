/** What every bench shares: medians over rounds, and a result that is a ratio with its goal. */

/** A ratio of what was measured to the baseline of the same round, over all rounds. */
export interface Result {
  /** What is compared with what. */
  name: string;
  /** One ratio a round. */
  ratios: readonly number[];
  /** Null where the ratio only informs. */
  goal: Goal | null;
  /** What was measured, in units; for the reader, not a result. */
  detail: string;
}

type Goal = { atMost: number } | { atLeast: number };

export interface Bench {
  name: string;
  about: string;
  run(options: BenchOptions): Promise<Result[]>;
}

/** Sizes; by default small enough for a bench to take about a minute. */
export interface BenchOptions {
  rounds: number;
  /** Lines that are measured. */
  lines: number;
  /** Messages in the history. */
  messages: number;
  /** Messages that wait while the API is measured. */
  backlog: number;
  /** Webhook deliveries of one round. */
  deliveries: number;
  /** Selects the kinds of noise whose names contain it. */
  noise: string;
  report: (line: string) => void;
}

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The percentile: `percent` of the values are not above it. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(sorted.length * percent / 100) - 1))] ?? NaN;
}

/** Whether the median meets the goal; null without one. */
function isMet({ ratios, goal }: Result): boolean | null {
  if (goal === null) return null;
  const ratio = median(ratios);
  return "atMost" in goal ? ratio <= goal.atMost : ratio >= goal.atLeast;
}

/** `3.1x (2.9x to 3.4x)  goal at least 2x: met  …` */
export function rowOf(result: Result): string {
  const { name, ratios, goal, detail } = result;
  const ratio = `${times(median(ratios))} (${times(Math.min(...ratios))} to ${times(Math.max(...ratios))})`;
  const wanted = goal === null
    ? "no goal"
    : `goal ${"atMost" in goal ? `at most ${goal.atMost}x` : `at least ${goal.atLeast}x`}: ${
      isMet(result) ? "met" : "MISSED"
    }`;
  return `  ${name.padEnd(58)} ${ratio.padEnd(26)} ${wanted.padEnd(26)} ${detail}`;
}

function times(ratio: number): string {
  return `${ratio.toFixed(2)}x`;
}

/** The medians of measurements, field by field. */
export function medians<T extends Record<string, number>>(rounds: readonly T[]): T {
  const [first] = rounds;
  return Object.fromEntries(
    Object.keys(first ?? {}).map((name) => [name, median(rounds.map((round) => round[name]!))]),
  ) as T;
}
