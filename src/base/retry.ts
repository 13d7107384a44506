/** Trying again what failed for a reason that passes. For work on the store: `store/retry.ts`. */
import { type Clock, sleep } from "../runtime.ts";

export interface RetryOptions {
  clock: Clock;
  /** Milliseconds between tries: one number for as long as it takes, or one number for each further try. */
  pauseMs: number | readonly number[];
  /** Ends the trying, a pause too. The work itself has to mind it as it can. */
  signal?: AbortSignal;
  /** Whether another try may help; every failure may when this is left out. */
  isTransient?: (error: unknown) => boolean;
  /** Hears of each failure that another try follows. */
  onRetry?: (error: unknown) => void;
}

/** What `work` gives at last. Rejects with its last failure: none may help, no try is left, or the signal aborted. */
export async function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, pauseMs, signal, isTransient = () => true, onRetry } = options;
  for (let failures = 0;; failures++) {
    try {
      return await work();
    } catch (error) {
      const pause = typeof pauseMs === "number" ? pauseMs : pauseMs[failures];
      if (pause === undefined || signal?.aborted || !isTransient(error)) throw error;
      onRetry?.(error);
      await sleep(clock, pause, signal);
      if (signal?.aborted) throw error;
    }
  }
}
