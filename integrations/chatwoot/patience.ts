/** Work that goes on until it is done, through outages of either side. */
import { PalomaConnectionError, PalomaError } from "../../clients/typescript/src/index.ts";
import { ChatwootError, ChatwootUnreachable } from "./chatwoot.ts";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;

export type Log = (line: string) => void;

export interface Patience {
  signal: AbortSignal;
  log: Log;
}

/**
 * Tries until it succeeds; `again` is true if an earlier try may have done it. Throws what will not pass, and the signal's
 * reason.
 */
export async function untilDone<T>({ signal, log }: Patience, work: (again: boolean) => Promise<T>): Promise<T> {
  for (let failures = 0;;) {
    signal.throwIfAborted();
    try {
      return await work(failures > 0);
    } catch (error) {
      if (!isTemporary(error)) throw error;
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failures++, LONGEST_PAUSE_MS);
      if (failures === 1 || pauseMs === LONGEST_PAUSE_MS) log(`waiting: ${(error as Error).message}`);
      await pause(pauseMs, signal);
    }
  }
}

/** Resolves after a while, or when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

function isTemporary(error: unknown): boolean {
  if (error instanceof ChatwootError) return error.isTemporary;
  // The client has waited for a busy gateway; a quota is used up for hours.
  if (error instanceof PalomaError) return error.status >= 500 || error.status === 401 || error.code === "rate_limited";
  return error instanceof ChatwootUnreachable || error instanceof PalomaConnectionError;
}
