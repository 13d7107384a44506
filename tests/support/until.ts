/** Waiting for what another process, a real socket or the disk brings about. */
import { GIVE_UP_AFTER_MS } from "../../src/cli/client.ts";

/** A tenth of what has been waited so far, within these bounds: soon there for what is quick, and cheap for what is not. */
const PAUSE_MS = { shortest: 1, longest: 50 };

type Something<T> = Exclude<T, null | undefined | false | 0 | "">;

/** Asks again and again until the answer is truthy. Throws when it does not come. */
export async function until<T>(ask: () => T | Promise<T>, what = String(ask)): Promise<Something<T>> {
  const begun = performance.now();
  for (;;) {
    const answer = await ask();
    if (answer) return answer as Something<T>;
    const waitedMs = performance.now() - begun;
    if (waitedMs > GIVE_UP_AFTER_MS) throw new Error(`Waited ${GIVE_UP_AFTER_MS / 1000} s in vain for ${what}.`);
    const pauseMs = Math.min(Math.max(waitedMs / 10, PAUSE_MS.shortest), PAUSE_MS.longest);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
