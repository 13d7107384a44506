/** Retries work that failed for a passing reason. For work on the store: `store/retry.ts`. */
import { type Clock, sleep } from "../runtime.ts";

export interface RetryOptions {
  clock: Clock;
  /** Milliseconds between tries: a number to retry for ever, a list with one pause for each retry. */
  pauseMs: number | readonly number[];
  /** Ends the retries, a pause too. The work must heed it by itself. */
  signal?: AbortSignal;
  /** Whether a retry may help; unless given, every failure is retried. */
  isTransient?: (error: unknown) => boolean;
  /** Called with each failure that is retried. */
  onRetry?: (error: unknown) => void;
}

/** Resolves as `work` does; rejects with its last failure when no retry may help or is left, or the signal aborts. */
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
