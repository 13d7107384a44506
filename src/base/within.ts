/** Time limits on the runtime's clock. */
import type { Clock } from "../runtime.ts";

/**
 * Resolves to the promise's value, or to "late" after `limitMs` or when the signal aborts. Rejects as the promise does;
 * a later rejection is ignored.
 */
export function within<T>(
  clock: Clock,
  limitMs: number,
  promise: Promise<T>,
  signal?: AbortSignal,
): Promise<T | "late"> {
  return new Promise((resolve, reject) => {
    const late = () => resolve("late");
    const cancel = clock.after(limitMs, late);
    signal?.addEventListener("abort", late, { once: true });
    if (signal?.aborted) late();
    const end = () => {
      cancel();
      signal?.removeEventListener("abort", late);
    };
    promise.then((value) => {
      end();
      resolve(value);
    }, (error) => {
      end();
      reject(error);
    });
  });
}

/** Whether the promise settled in time; a rejection counts as settled. */
export async function settledWithin(clock: Clock, limitMs: number, promise: Promise<unknown>): Promise<boolean> {
  return await within(clock, limitMs, promise.then(() => true, () => true)) === true;
}

/** A time limit on work with several stages. */
interface TimeLimit extends Disposable {
  /** Aborts when the time is up, with a `TimeoutError` as the reason, or when the given signal does. */
  readonly signal: AbortSignal;
  /** Whether it aborted because the time was up. */
  readonly isOver: boolean;
}

/** `AbortSignal.timeout` on the runtime's clock. Must be disposed of when the work is done (`using`). */
export function timeLimit(clock: Clock, limitMs: number, signal?: AbortSignal): TimeLimit {
  const over = new AbortController();
  const cancel = clock.after(limitMs, () => over.abort(new DOMException("time is up", "TimeoutError")));
  return {
    signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal,
    get isOver() {
      return over.signal.aborted;
    },
    [Symbol.dispose]: cancel,
  };
}

/** Rejects with the signal's reason when it aborts, whether or not the promise observes the signal. */
export function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
