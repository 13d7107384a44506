/**
 * Refusals cost a caller nothing and the gateway some work: past a number a second for one party each waits before it
 * goes out, so that a caller who retries at once is slowed down.
 */
import { type Clock, sleep } from "../../runtime.ts";

const FREE_A_SECOND = 50;
const WAIT_MS = 500;
const WINDOW_MS = 1_000;
/** How many parties are counted; then all counts begin anew. */
const MAX_WINDOWS = 10_000;

/** Resolves when a refusal of the party may go out. */
type HoldRefusal = (party: string) => Promise<void>;

export function makeHoldRefusal(clock: Clock): HoldRefusal {
  const windows = new Map<string, { begun: number; count: number }>();
  return async (party) => {
    const now = clock.now();
    let window = windows.get(party);
    if (!window || Math.abs(now - window.begun) >= WINDOW_MS) {
      if (windows.size >= MAX_WINDOWS) windows.clear();
      windows.set(party, window = { begun: now, count: 0 });
    }
    if (++window.count > FREE_A_SECOND) await sleep(clock, WAIT_MS);
  };
}
