/** One timer shared by many periodic checks, so that an idle line costs no wake-up of its own. */
import type { Clock } from "../runtime.ts";

/** Calls `look` periodically, the first time within one period; the returned function ends it. */
type Rounds = (look: () => void) => () => void;

/** `look` must return at once and must not throw. The timer runs only while there is a check. */
export function makeRounds(clock: Clock, everyMs: number): Rounds {
  const looks = new Set<() => void>();
  let cancel: (() => void) | null = null;

  function go(): void {
    cancel = clock.after(everyMs, go);
    for (const look of looks) look();
  }

  return (look) => {
    // A wrapper, because the same function may be given twice.
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
