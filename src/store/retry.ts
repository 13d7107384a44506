/** Retries until the store is back (promise 4: whatever happened is eventually written). */
import { retry, type RetryOptions } from "../base/retry.ts";
import { StoreError } from "./kv.ts";

/** A full disk or a locked file may last a while; one attempt a second costs next to nothing. */
export const STORE_PAUSE_MS = 1_000;

/**
 * Runs `work`, retrying on StoreError. Rejects at once with any other error, and with the last StoreError when the
 * signal aborts. `onRetry` is called with each failure that is followed by another attempt.
 */
export async function untilStored<T>(
  work: () => Promise<T>,
  options: Pick<RetryOptions, "clock" | "signal" | "onRetry">,
): Promise<T> {
  return await retry(work, {
    ...options,
    pauseMs: STORE_PAUSE_MS,
    isTransient: (error) => error instanceof StoreError,
  });
}
