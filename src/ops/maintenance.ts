/** Sweeps: they remove rows and files whose time is over. Nothing in the store expires by itself (`store/kv.ts`). */
import PQueue from "p-queue";
import type { Service } from "../base/service.ts";
import type { Runtime } from "../runtime.ts";

export interface Sweep {
  name: string;
  everyMs: number;
  /**
   * Calls `wake` when it is to run before its time, and answers how to stop that. A call may get lost, so it runs at its
   * own pace too.
   */
  wakenBy?(wake: () => void): () => void;
  /** One bounded slice of work; resolves to how many things it removed. Stops early when the signal aborts. */
  run(signal: AbortSignal): Promise<number>;
}

/** The first run of each sweep comes this long after the start, so that the start has the store to itself. */
const FIRST_RUN_MS = 10_000;

/** Runs each sweep at its own pace and when it is woken, one at a time. A sweep that fails is logged and comes again. */
export function makeMaintenance(
  sweeps: readonly Sweep[],
  { clock, log, random }: Pick<Runtime, "clock" | "log" | "random">,
): Service {
  const abort = new AbortController();
  const timers = new Map<Sweep, () => void>();
  const turning = new Set<Sweep>();
  /** Of those, which are to run once more. */
  const woken = new Set<Sweep>();
  const deafen: (() => void)[] = [];
  const queue = new PQueue({ concurrency: 1 });

  function plan(sweep: Sweep, delayMs: number): void {
    if (abort.signal.aborted) return;
    timers.get(sweep)?.();
    timers.set(sweep, clock.after(delayMs, () => void turn(sweep)));
  }

  /** Whoever calls while it runs or waits for its turn is heard after that. */
  function wake(sweep: Sweep): void {
    if (!turning.has(sweep)) plan(sweep, 0);
    else woken.add(sweep);
  }

  async function turn(sweep: Sweep): Promise<void> {
    turning.add(sweep);
    await queue.add(() => run(sweep));
    turning.delete(sweep);
    plan(sweep, woken.delete(sweep) ? 0 : sweep.everyMs);
  }

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
        if (timers.has(sweep)) continue;
        plan(sweep, Math.min(sweep.everyMs, FIRST_RUN_MS + random.between(0, FIRST_RUN_MS)));
        if (sweep.wakenBy) deafen.push(sweep.wakenBy(() => wake(sweep)));
      }
      return Promise.resolve();
    },
    async stop() {
      abort.abort();
      for (const deaf of deafen.splice(0)) deaf();
      for (const cancel of timers.values()) cancel();
      await queue.onIdle();
    },
  };
}
