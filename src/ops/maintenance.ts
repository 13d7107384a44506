/** Sweeps: they remove rows and files whose time is over. Nothing in the store expires by itself (`store/kv.ts`). */
import PQueue from "p-queue";
import type { Service } from "../base/service.ts";
import type { Runtime } from "../runtime.ts";

export interface Sweep {
  name: string;
  everyMs: number;
  /** One bounded slice of work; resolves to how many things it removed. Stops early when the signal aborts. */
  run(signal: AbortSignal): Promise<number>;
}

/** The first run of each sweep comes this long after the start, so that the start has the store to itself. */
const FIRST_RUN_MS = 10_000;

/** Runs each sweep at its own pace, one at a time. A sweep that fails is logged and comes again. */
export function makeMaintenance(sweeps: readonly Sweep[], options: { runtime: Runtime }): Service {
  const { clock, log, random } = options.runtime;
  const abort = new AbortController();
  const timers = new Map<Sweep, () => void>();
  const queue = new PQueue({ concurrency: 1 });

  function plan(sweep: Sweep, delayMs: number): void {
    if (abort.signal.aborted) return;
    timers.set(sweep, clock.after(delayMs, () => void turn(sweep)));
  }

  async function turn(sweep: Sweep): Promise<void> {
    await queue.add(() => run(sweep));
    plan(sweep, sweep.everyMs);
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
        if (!timers.has(sweep)) plan(sweep, Math.min(sweep.everyMs, FIRST_RUN_MS + random.between(0, FIRST_RUN_MS)));
      }
      return Promise.resolve();
    },
    async stop() {
      abort.abort();
      for (const cancel of timers.values()) cancel();
      await queue.onIdle();
    },
  };
}
