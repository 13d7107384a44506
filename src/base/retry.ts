/**
 * What follows a failure: retries, for work on the store see `untilStored` in `store/kv.ts`, only a line of the log, or
 * another value.
 */
import { type Clock, sleep } from "../runtime.ts";

export interface RetryOptions {
  clock: Clock;
  /** Pause between attempts, ms: a number to retry forever, or a list with one pause per retry. */
  pauseMs: number | readonly number[];
  /** Ends the retries, including a pause. The work must observe it by itself. */
  signal?: AbortSignal;
  /** Whether a retry may help; by default every failure is retried. */
  isTransient?: (error: unknown) => boolean;
  /** Called with each failure that is retried. */
  onRetry?: (error: unknown) => void;
}

/**
 * Resolves as `work` does. Rejects with its last failure if that is not transient, no retry is left, or the signal
 * aborts.
 */
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

/** Fire and forget: resolves when the work has ended. `failed` logs a failure. */
export async function detached(work: Promise<unknown>, failed: (fields: { error: string }) => void): Promise<void> {
  try {
    await work;
  } catch (error) {
    failed({ error: errorName(error) });
  }
}

/** Returns what `read` does; `otherwise` if it throws. For what others wrote, which may be malformed. */
export function unlessMalformed<T, Otherwise>(read: () => T, otherwise: Otherwise): T | Otherwise {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** Returns the code that the system or a library gave the error, such as `ENOSPC`; undefined if there is none. */
export function errorCode(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/** Returns only the error's name: a library's message may contain what must not be logged (promise 6). */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}
