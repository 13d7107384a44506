/** The event feed as an iterator: pages up to the present, then the stream, and again after an interruption. */
import type { AnyEvent, EventName, EventPage } from "./api.ts";
import { EventGapError } from "./errors.ts";
import { connectionError, pause, type Transport, waitAfter } from "./transport.ts";

/** An event of the feed. Keep the `id` of the last one that you have handled: it is the cursor. */
export type FeedEvent = AnyEvent & { id: string; createdAt: string };

export interface EventsOptions {
  /** The `id` of the last event that you have handled, or `now`. Defaults to the oldest event kept. */
  after?: string | undefined;
  types?: readonly EventName[];
  sessionId?: string;
  /** Ends the iteration by throwing its reason. */
  signal?: AbortSignal;
  /** Called if events after the cursor are no longer kept; then the iteration goes on. Without it, EventGapError is thrown. */
  onGap?: (cursor: string) => void;
}

/** The gateway writes a comment every 15 seconds. */
const LONGEST_SILENCE_MS = 45_000;
const PAGE = "1000";

export async function* iterateEvents(
  transport: Transport,
  options: EventsOptions,
): AsyncGenerator<FeedEvent, never> {
  const { types, sessionId, signal, onGap } = options;
  const query = (cursor: string | undefined, limit?: string) => {
    const given = { after: cursor, types: types?.join(","), sessionId, limit };
    return new URLSearchParams(
      Object.entries(given).filter((pair): pair is [string, string] => pair[1] !== undefined),
    );
  };
  let cursor = options.after;
  for (let failures = 0;;) {
    for (;;) {
      const path = `/events?${query(cursor, PAGE)}`;
      const { data, next, gap } = await transport.json({
        method: "GET",
        path,
        attempts: Infinity,
        ...signal && { signal },
      }) as EventPage;
      if (gap) {
        if (!onGap) throw new EventGapError(cursor!);
        onGap(cursor!);
      }
      for (const event of data as FeedEvent[]) {
        yield event;
        cursor = event.id;
      }
      // No event at all is kept, so the oldest is the next.
      if (next === null && cursor === "now") cursor = undefined;
      if (next === null) break;
      cursor = next;
    }
    try {
      for await (const event of streamed(transport, query(cursor), signal)) {
        failures = 0;
        yield event;
        cursor = event.id;
      }
      failures++;
    } catch (error) {
      signal?.throwIfAborted();
      if (waitAfter(error, "GET", ++failures) === null) throw error;
    }
    await pause(waitAfter(connectionError(null), "GET", failures)!, signal);
  }
}

/** One connection. Ends with it. */
async function* streamed(
  transport: Transport,
  query: URLSearchParams,
  signal: AbortSignal | undefined,
): AsyncGenerator<FeedEvent> {
  const end = new AbortController();
  const abort = () => end.abort();
  signal?.addEventListener("abort", abort);
  let silence = setTimeout(abort, LONGEST_SILENCE_MS);
  try {
    const call = {
      method: "GET",
      path: `/events/stream?${query}`,
      headers: { accept: "text/event-stream" },
    };
    const response = await transport.open({ ...call, signal: end.signal });
    const decoder = new TextDecoder();
    const reader = response.body!.getReader();
    for (let text = "";;) {
      const { value, done } = await reader.read().catch((error) => {
        throw connectionError(error);
      });
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(abort, LONGEST_SILENCE_MS);
      const blocks = (text + decoder.decode(value, { stream: true })).split(
        "\n\n",
      );
      text = blocks.pop()!;
      for (const block of blocks) {
        const data = block.split("\n").find((line) => line.startsWith("data:"));
        if (data) yield JSON.parse(data.slice("data:".length));
      }
    }
  } finally {
    clearTimeout(silence);
    signal?.removeEventListener("abort", abort);
    end.abort();
  }
}
