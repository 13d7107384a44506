/** Time limits, by the runtime's clock. */
import type { Clock } from "../runtime.ts";

/**
 * The promise's value, or "late" after `limitMs` or when the signal aborts. Rejects as the promise does; a rejection
 * that comes later is ignored.
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

/** True when the promise settled in time; its rejection counts as settled. */
export async function settledWithin(clock: Clock, limitMs: number, promise: Promise<unknown>): Promise<boolean> {
  return await within(clock, limitMs, promise.then(() => true, () => true)) === true;
}

/** A time limit on work of several stages. */
interface TimeLimit extends Disposable {
  /** Aborts when time is up, its reason then a `TimeoutError`, or with the signal that the limit was made with. */
  readonly signal: AbortSignal;
  /** Whether it aborted because time is up. */
  readonly isOver: boolean;
}

/** `AbortSignal.timeout` by the runtime's clock; dispose of it when the work is done (`using`). */
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

/** Rejects with the signal's reason when it aborts, whether or not the promise heeds the signal. */
export function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
