/** All sweeps, and how often each runs. Their work is loaded with the first that runs: none does in the first ten seconds. */
import { onDemand } from "../base/single_flight.ts";
import { ERASURE_TOPIC } from "../erasure/erasures.ts";
import type { Changes } from "../store/changes.ts";
import type { Sweep } from "./maintenance.ts";
import type { SweepContext, sweepWork } from "./sweep_work.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

type SweepName = keyof ReturnType<typeof sweepWork>;

const EVERY_MS: readonly (readonly [SweepName, number])[] = [
  ["removed accounts", MINUTE_MS],
  ["erased people", MINUTE_MS],
  ["idempotency answers", HOUR_MS],
  ["seen messages", MINUTE_MS],
  ["chats that wrote", HOUR_MS],
  ["chats that are silent", MINUTE_MS],
  ["bulks", MINUTE_MS],
  ["quota of cancelled messages", MINUTE_MS],
  ["history filters", MINUTE_MS],
  ["history", MINUTE_MS],
  ["bulks that were never accepted", 10 * MINUTE_MS],
  ["questions between processes", MINUTE_MS],
  ["network rows", HOUR_MS],
  ["events", 10 * MINUTE_MS],
  ["deliveries", HOUR_MS],
  ["received files", MINUTE_MS],
  ["chunks of replaced values", MINUTE_MS],
  ["orphaned files", HOUR_MS],
];

export function sweeps({ changes, ...context }: SweepContext & { changes: Changes }): Sweep[] {
  const work = onDemand(async () => (await import("./sweep_work.ts")).sweepWork(context));
  const wakenBy: Partial<Record<SweepName, Sweep["wakenBy"]>> = {
    // A command asked for it, and waits.
    "removed accounts": changes.hear,
    "erased people": (wake) => context.bell.hear(ERASURE_TOPIC, wake),
  };
  return EVERY_MS.map(([name, everyMs]) => ({
    name,
    everyMs,
    wakenBy: wakenBy[name],
    run: async (signal) => await (await work.need())[name](signal),
  }));
}
