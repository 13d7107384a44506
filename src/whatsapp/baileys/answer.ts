/** What the network answers to a question, or the port's word for why there is no answer. */
import type { Clock } from "../../runtime.ts";
import { within } from "../../base/within.ts";
import { NetworkRefusal, NetworkTimeout } from "../network_error.ts";
import { queryError, statusOf, TIMED_OUT } from "./library_error.ts";

/** Longer than any answer takes; below the library's own limit. */
const ANSWER_MS = 20_000;

/**
 * Resolves to the answer. `what` completes "The messaging network could not …". Throws NetworkRefusal with the network's
 * code, NetworkTimeout.
 */
export async function answerOf<T>(
  clock: Clock,
  asked: Promise<T>,
  what: string,
  { withinMs = ANSWER_MS }: { withinMs?: number } = {},
): Promise<T> {
  const late = (cause?: unknown) => new NetworkTimeout(`The messaging network did not ${what} in time.`, { cause });
  const answer = await within(clock, withinMs, asked).catch((cause) => {
    if (cause instanceof NetworkRefusal || cause instanceof NetworkTimeout) throw cause;
    if (statusOf(cause) === TIMED_OUT) throw late(cause);
    const code = queryError(cause) || null;
    const reason = code === null ? "" : ` (${code} ${String(cause.message).slice(0, 60)})`;
    throw new NetworkRefusal(`The messaging network did not ${what}${reason}.`, { cause, code });
  });
  if (answer === "late") throw late();
  return answer;
}
