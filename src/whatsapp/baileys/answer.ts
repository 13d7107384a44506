/**
 * Resolves queries to the network's answer, or to the port's error. The library's errors are Booms; they are read here
 * without importing that package.
 */
import type { Clock } from "../../runtime.ts";
import { within } from "../../base/within.ts";
import { NetworkRefusal, NetworkTimeout } from "../network_error.ts";

/** Longer than any answer takes, and below the library's own limit. */
const ANSWER_MS = 20_000;
/** The status with which the library reports a timeout. */
export const TIMED_OUT = 408;

/**
 * Resolves to the answer of the query `asked`. `what` completes the sentence "The messaging network did not …". Throws
 * NetworkRefusal with the network's code, or NetworkTimeout.
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

/** Returns the error code in the network's answer to a query; null if something else failed. */
export function queryError(error: unknown): number | null {
  return error instanceof Error && "data" in error && typeof error.data === "number" ? error.data : null;
}

/** Returns the status that the library gave the error; null if it has none. */
export function statusOf(error: unknown): number | null {
  const output = error instanceof Error && "output" in error ? error.output : null;
  if (typeof output !== "object" || output === null || !("statusCode" in output)) return null;
  return typeof output.statusCode === "number" ? output.statusCode : null;
}
