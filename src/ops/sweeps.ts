/**
 * All sweeps and their intervals. Their code is loaded when the first sweep runs, 10 s after the start at the earliest.
 */
import { onDemand } from "../base/single_flight.ts";
import { ERASURE_TOPIC } from "../erasure/erasures.ts";
import type { Bell } from "../store/bell.ts";
import type { Changes } from "../store/changes.ts";
import type { Sweep } from "./maintenance.ts";
import type { SweepWork } from "./sweep_work.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

type SweepName = keyof SweepWork;

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

/** Returns the sweeps. `load` is called when the first of them runs. */
export function sweeps({ bell, changes }: { bell: Bell; changes: Changes }, load: () => Promise<SweepWork>): Sweep[] {
  const work = onDemand(load);
  const wakenBy: Partial<Record<SweepName, Sweep["wakenBy"]>> = {
    // Requested by a command, whose user waits for it.
    "removed accounts": changes.hear,
    "erased people": (wake) => bell.hear(ERASURE_TOPIC, wake),
  };
  return EVERY_MS.map(([name, everyMs]) => ({
    name,
    everyMs,
    wakenBy: wakenBy[name],
    run: async (signal) => await (await work.need())[name](signal),
  }));
}
