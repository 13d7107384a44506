/** Waiting for a promise no longer than is sensible, by the runtime's clock. */
import type { Clock } from "../../runtime.ts";

/** What the promise gives, or "late". Rejects as it does; a rejection after the deadline is nobody's concern. */
export function within<T>(clock: Clock, deadlineMs: number, promise: Promise<T>): Promise<T | "late"> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(deadlineMs, () => resolve("late"));
    promise.then(resolve, reject).finally(cancel);
  });
}
