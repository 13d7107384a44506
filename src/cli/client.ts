/** A small client of Paloma's own API and of the sandbox's control API, as a user's program would call them. */
import { type Clock, sleep } from "../runtime.ts";
import { Exit } from "./output.ts";

const POLL_MS = 50;
/** Generous: enough even on a machine ten times slower than a developer's. */
export const GIVE_UP_AFTER_MS = 120_000;
/** Most characters shown of an answer that cannot be parsed. */
const SHOWN = 200;

// deno-lint-ignore no-explicit-any -- answers are read as the reader of the API reference would, field by field
export type Json = any;

export interface Client {
  call(method: string, path: string, body?: unknown): Promise<Json>;
}

/** Returns a client for paths below `base`. Calls throw Exit 1 if there is no answer, or its status is not 2xx. */
export function httpClient(base: string, headers: Record<string, string> = {}): Client {
  return {
    async call(method, path, body) {
      const { ok, status, text } = await ask(base, path, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      if (!ok) throw new Exit(1, `${method} ${path} answered ${refusal(status, text)}`);
      try {
        return JSON.parse(text);
      } catch {
        throw new Exit(1, `${base} is not a Paloma API: ${method} ${path} answered ${text.slice(0, SHOWN)}`);
      }
    },
  };
}

async function ask(base: string, path: string, request: RequestInit) {
  try {
    const response = await fetch(base + path, request);
    return { ok: response.ok, status: response.status, text: await response.text() };
  } catch (error) {
    throw new Exit(1, unreachable(base, reasonOf(error)));
  }
}

/** Returns what to say of a program that cannot be reached at this address. */
export function unreachable(base: string, reason: string): string {
  if (!/refused|connect error/i.test(reason)) return `${base} cannot be reached: ${reason}`;
  return `Nothing answers at ${base} (${reason}): is \`paloma serve\` running there?`;
}

/** Returns the status of a refusal with what its problem document says, or with the beginning of any other answer. */
export function refusal(status: number, text: string): string {
  try {
    const { code, detail } = JSON.parse(text);
    if (code && detail) return `${status} (${code}): ${detail}`;
  } catch {
    // Of a proxy, or of another program.
  }
  return `${status}: ${text.trim().replace(/\s+/g, " ").slice(0, SHOWN)}`;
}

/** Returns what an error was caused by in the end: of a request, `fetch` itself only says that it failed. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}

/** Polls until the answer is neither null nor undefined. Throws Exit 1 after `timeoutMs`. */
export async function until<T>(
  clock: Clock,
  ask: () => Promise<T | null | undefined>,
  { what, timeoutMs = GIVE_UP_AFTER_MS, pauseMs = POLL_MS }: { what: string; timeoutMs?: number; pauseMs?: number },
): Promise<T> {
  const end = clock.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined) return answer;
    if (clock.now() > end) throw new Exit(1, `Gave up after ${timeoutMs / 1000} s of waiting for ${what}.`);
    await sleep(clock, pauseMs);
  }
}

/**
 * Links a session with a simulated phone: reads the QR that the gateway shows and lets the phone scan that very PNG,
 * again for every new one, until the session is connected.
 */
export async function linkByQr(
  clock: Clock,
  { api, control, sessionId, phone }: { api: Client; control: Client; sessionId: string; phone: string },
): Promise<{ scans: number }> {
  let scanned: string | null = null;
  let scans = 0;
  await until(clock, async () => {
    const { status, qr } = await api.call("GET", `/sessions/${sessionId}/qr`);
    if (status === "connected") return true;
    if (qr && qr !== scanned) {
      scanned = qr;
      scans++;
      await control.call("POST", `/phones/${phone}/scan`, { qr });
    }
    return null;
  }, { what: "the line to connect" });
  return { scans };
}
