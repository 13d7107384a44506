/** Trying again until the store is back (promise 4: what has happened is written at last, whatever trouble it is in). */
import { retry, type RetryOptions } from "../base/retry.ts";
import { StoreError } from "./kv.ts";

/** A full disk or a locked file may last; a look each second costs nothing. */
export const STORE_PAUSE_MS = 1_000;

/**
 * Runs `work` until the store takes part. Rejects with an error that is not the store's at once, and with the store's
 * when the signal aborts; `onRetry` hears of each failure that another try follows.
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
