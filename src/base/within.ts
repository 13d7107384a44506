/** Time limits on the runtime's clock. */
import { type Clock, sleep } from "../runtime.ts";

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
    const end = () => {
      cancel();
      signal?.removeEventListener("abort", late);
    };
    const late = () => {
      end();
      resolve("late");
    };
    const cancel = clock.after(limitMs, late);
    signal?.addEventListener("abort", late);
    if (signal?.aborted) late();
    promise.then(resolve, reject).finally(end);
  });
}

/** Whether the promise settled in time; a rejection counts as settled. */
export async function settledWithin(clock: Clock, limitMs: number, promise: Promise<unknown>): Promise<boolean> {
  return await within(clock, limitMs, Promise.allSettled([promise])) !== "late";
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

/** Polling interval of `readUntil`, in case a ring is lost. */
const LOOK_EVERY_MS = 1_000;

interface ReadUntilOptions {
  clock: Clock;
  /** How long to wait, ms. */
  withinMs: number;
  /** Calls `changed` when the state may have changed; returns the unsubscribe function. */
  watch: (changed: () => void) => () => void;
}

/**
 * Waits until stored state has changed as requested, notified by rings and with slow polling as a fallback. Resolves to
 * the last value that was read, once `done` accepts it or the time is over. Rejects as `read` does.
 */
export async function readUntil<T>(
  read: () => Promise<T>,
  done: (now: T) => boolean,
  { clock, withinMs, watch }: ReadUntilOptions,
): Promise<T> {
  using limit = timeLimit(clock, withinMs);
  for (;;) {
    const changed = new AbortController();
    const unwatch = watch(() => changed.abort());
    try {
      const now = await read();
      if (done(now) || limit.isOver) return now;
      await sleep(clock, LOOK_EVERY_MS, AbortSignal.any([limit.signal, changed.signal]));
    } finally {
      unwatch();
    }
  }
}
