/** Follows the gateway's event stream, and resumes after the last event when the connection breaks. */
import { type Clock, sleep } from "../runtime.ts";
import type { Json } from "./client.ts";
import { Exit } from "./output.ts";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

interface FollowOptions {
  clock: Clock;
  /** `http://HOST:PORT/v1`. */
  baseUrl: string;
  apiKey: string;
  types: string | null;
  sessionId: string | null;
  /** Id of the last event seen, `now`, or null for the oldest that is kept. */
  after: string | null;
  signal: AbortSignal;
  /** Called once, when the stream is open. */
  opened(): void;
  /** Called at each break, before the stream is opened again after `pauseMs`. */
  broke(reason: string, pauseMs: number): void;
}

/** Events as the feed shows them, until the signal. Throws Exit 1 when the gateway cannot be asked the first time. */
export async function* followEvents(options: FollowOptions): AsyncGenerator<Json> {
  const { clock, signal } = options;
  let { after } = options;
  let pauseMs = 0;
  let opened = false;
  while (!signal.aborted) {
    try {
      // "Now" is when we began: a break must not leave out what happened meanwhile.
      if (after === "now") after = (await (await ask(options, "/events?after=now&limit=1")).json()).next;
      const response = await ask(options, streamPath(options, after));
      if (!opened) options.opened();
      opened = true;
      for await (const { id, data } of blocks(response)) {
        pauseMs = 0;
        after = id;
        yield JSON.parse(data);
      }
      if (!signal.aborted) options.broke("the gateway ended the stream", pauseMs);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Exit) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      if (!opened) throw new Exit(1, `The gateway at ${options.baseUrl} cannot be reached: ${reason}`);
      options.broke(reason, pauseMs);
    }
    await sleep(clock, pauseMs, signal);
    pauseMs = Math.min(Math.max(FIRST_PAUSE_MS, pauseMs * 2), LONGEST_PAUSE_MS);
  }
}

function streamPath({ types, sessionId }: FollowOptions, after: string | null): string {
  const query = new URLSearchParams();
  if (types !== null) query.set("types", types);
  if (sessionId !== null) query.set("sessionId", sessionId);
  if (after !== null) query.set("after", after);
  return `/events/stream?${query}`;
}

async function ask({ baseUrl, apiKey, signal }: FollowOptions, path: string): Promise<Response> {
  const response = await fetch(baseUrl + path, { headers: { "x-api-key": apiKey }, signal });
  if (response.status === 200) return response;
  const answer = await response.text();
  // Trying again helps a gateway in trouble; it does not help a wrong key.
  if (response.status >= 500) throw new Error(`it answered ${response.status}`);
  throw new Exit(1, `The gateway answered ${response.status}: ${answer}`);
}

/** The events of a stream of server-sent events; comments and other fields are skipped. */
async function* blocks(response: Response): AsyncGenerator<{ id: string; data: string }> {
  let rest = "";
  for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + text).split("\n\n");
    rest = parts.pop()!;
    for (const part of parts) {
      const fields = new Map(part.split("\n").map((line) => [line.split(":", 1)[0]!, line.replace(/^[^:]*: ?/, "")]));
      const [id, data] = [fields.get("id"), fields.get("data")];
      if (id !== undefined && data !== undefined) yield { id, data };
    }
  }
}
