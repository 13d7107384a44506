/** Waiting for what another process, a real socket or the disk brings about. */
import { within } from "../../src/base/within.ts";
import { GIVE_UP_AFTER_MS } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";

/** A tenth of what has been waited so far, within these bounds: soon there for what is quick, and cheap for what is not. */
const PAUSE_MS = { shortest: 1, longest: 50 };

type Something<T> = Exclude<T, null | undefined | false | 0 | "">;

/** Asks again and again until the answer is truthy. Throws when it does not come, or the asking does not end. */
export async function until<T>(ask: () => T | Promise<T>, what = String(ask)): Promise<Something<T>> {
  const begun = performance.now();
  for (let waitedMs = 0;; waitedMs = performance.now() - begun) {
    const answer = await inTime(Promise.resolve(ask()), what, GIVE_UP_AFTER_MS - waitedMs);
    if (answer) return answer as Something<T>;
    const pauseMs = Math.min(Math.max(waitedMs / 10, PAUSE_MS.shortest), PAUSE_MS.longest);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Resolves as the promise does. Throws when it takes longer than that. */
export async function inTime<T>(promise: Promise<T>, what: string, limitMs = GIVE_UP_AFTER_MS): Promise<T> {
  const answer = limitMs > 0 ? await within(systemClock, limitMs, promise) : "late";
  if (answer === "late") throw new Error(`Waited ${GIVE_UP_AFTER_MS / 1000} s in vain for ${what}.`);
  return answer;
}
