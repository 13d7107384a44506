/** One timer for many who look at something from time to time: an idle line costs no wake-up of its own. */
import type { Clock } from "../runtime.ts";

/** Calls `look` every so often from now on, the first time within that time; the returned function ends it. */
type Rounds = (look: () => void) => () => void;

/** `look` must return at once, and must not throw. The timer runs while anybody looks. */
export function makeRounds(clock: Clock, everyMs: number): Rounds {
  const looks = new Set<() => void>();
  let cancel: (() => void) | null = null;

  function go(): void {
    cancel = clock.after(everyMs, go);
    for (const look of looks) look();
  }

  return (look) => {
    // The same function may be given twice.
    const own = () => look();
    looks.add(own);
    cancel ??= clock.after(everyMs, go);
    return () => {
      looks.delete(own);
      if (looks.size > 0) return;
      cancel?.();
      cancel = null;
    };
  };
}
