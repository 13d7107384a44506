/**
 * The sweeps, which remove expired rows and files: nothing in the store expires by itself (`store/kv.ts`). Their code,
 * `sweep_work.ts`, is loaded when the first of them runs, 10 s after the start at the earliest.
 */
import PQueue from "p-queue";
import type { Service } from "../base/service.ts";
import { Loop, onDemand } from "../base/single_flight.ts";
import { BACKFILL_TOPIC } from "../chat/rows.ts";
import { ERASURE_TOPIC } from "../erasure/erasures.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell, Changes } from "../store/bell.ts";
import type { SweepWork } from "./sweep_work.ts";

export interface Sweep {
  name: string;
  everyMs: number;
  /**
   * Calls `wake` when the sweep should run early; returns a function that stops this. Calls may get lost, so the sweep
   * runs at its interval too.
   */
  wakenBy?(wake: () => void): () => void;
  /** One bounded slice of work; resolves to how many things it removed. Stops early when the signal aborts. */
  run(signal: AbortSignal): Promise<number>;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Delay of each sweep's first run, so that it does not compete with the start for the store. */
const FIRST_RUN_MS = 10_000;

type SweepName = keyof SweepWork;

const EVERY_MS: readonly (readonly [SweepName, number])[] = [
  ["removed accounts", MINUTE_MS],
  ["erased people", MINUTE_MS],
  ["idempotency answers", HOUR_MS],
  ["seen messages", MINUTE_MS],
  ["chats that wrote", HOUR_MS],
  ["chats that are silent", MINUTE_MS],
  ["chats that are over", MINUTE_MS],
  ["chats of older data", MINUTE_MS],
  ["choices without an answer", HOUR_MS],
  ["replaced templates", HOUR_MS],
  ["verifications", MINUTE_MS],
  ["bulks", MINUTE_MS],
  ["quota of cancelled messages", MINUTE_MS],
  ["history filters", MINUTE_MS],
  ["history", MINUTE_MS],
  ["bulks that were never accepted", 10 * MINUTE_MS],
  ["questions between processes", MINUTE_MS],
  ["network rows", HOUR_MS],
  ["events", 10 * MINUTE_MS],
  ["events without room", MINUTE_MS],
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
    "chats of older data": (wake) => bell.hear(BACKFILL_TOPIC, wake),
    "erased people": (wake) => bell.hear(ERASURE_TOPIC, wake),
  };
  return EVERY_MS.map(([name, everyMs]) => ({
    name,
    everyMs,
    wakenBy: wakenBy[name],
    run: async (signal) => await (await work.need())[name](signal),
  }));
}

/**
 * Runs each sweep at its interval and when it is woken, one at a time. A failure is logged, and the sweep runs again.
 */
export function makeMaintenance(
  sweeps: readonly Sweep[],
  { clock, log, random }: Pick<Runtime, "clock" | "log" | "random">,
): Service {
  const abort = new AbortController();
  const loops = new Map<Sweep, Loop>();
  const deafen: (() => void)[] = [];
  const queue = new PQueue({ concurrency: 1 });

  async function run(sweep: Sweep): Promise<void> {
    if (abort.signal.aborted) return;
    const startedAt = clock.now();
    try {
      const removed = await sweep.run(abort.signal);
      if (removed > 0) log.debug({ sweep: sweep.name, removed, tookMs: clock.now() - startedAt }, "swept");
    } catch (error) {
      log.warn({ err: error, sweep: sweep.name }, "a sweep failed; it comes again");
    }
  }

  return {
    start() {
      for (const sweep of sweeps) {
        if (loops.has(sweep)) continue;
        const loop = new Loop(clock, async () => {
          await queue.add(() => run(sweep));
          return sweep.everyMs;
        });
        loops.set(sweep, loop);
        loop.start(Math.min(sweep.everyMs, FIRST_RUN_MS + random.between(0, FIRST_RUN_MS)));
        if (sweep.wakenBy) deafen.push(sweep.wakenBy(() => void loop.now()));
      }
      return Promise.resolve();
    },
    async stop() {
      abort.abort();
      for (const deaf of deafen.splice(0)) deaf();
      await Promise.all(loops.values().map((loop) => loop.stop()));
    },
  };
}
