/**
 * One stream a tab: the account's events as they happen, and a word when a line has changed, upon which the page asks
 * again. It costs nothing while nothing happens, and no rate limit.
 */
import type { LoggedEvent } from "../../event/event.ts";
import type { EventLog } from "../../event/log.ts";
import { feedEventOf } from "../../http/resources/event_schemas.ts";
import type { Lines } from "../../line/lines.ts";
import { type Runtime, sleep } from "../../runtime.ts";
import type { ApiContext } from "../../http/api/context.ts";
import type { Guard } from "./guard.ts";

const HEARTBEAT_MS = 20_000;
/** A page redraws no faster; what happens within it comes together. */
const PAUSE_MS = 200;
const PAGE = 50;

export interface LiveDeps {
  guard: Guard;
  events: EventLog;
  lines: Pick<Lines, "list">;
  /** Calls back after each change of the line; returns the function that ends it. */
  watchLine(lineId: string, look: () => void): () => void;
  runtime: Runtime;
  stopping: AbortSignal;
}

export function addLive(deps: LiveDeps): void {
  const { guard } = deps;
  guard.account({ method: "GET", path: "/accounts/:accountId/live" }, async ({ c, account }) => {
    const headers = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" };
    return c.body(await liveStream(deps, c, account.id), 200, { ...headers, "x-accel-buffering": "no" });
  });
}

/** As the feed shows it, without the picture of a QR: whoever shows it asks for it. */
function shown(event: LoggedEvent) {
  const fed = feedEventOf(event);
  return event.event === "session.qr" ? { ...fed, data: {} } : fed;
}

async function liveStream(deps: LiveDeps, c: ApiContext, accountId: string): Promise<ReadableStream<Uint8Array>> {
  const { guard, events, lines, watchLine, runtime, stopping } = deps;
  const encoder = new TextEncoder();
  const ended = new AbortController();
  const ends: (() => void)[] = [];
  const watched = new Map<string, () => void>();
  let wake = () => {};
  let linesChanged = false;
  let eventsCame = false;
  let after = await events.newest(accountId);

  function end(): void {
    ended.abort();
    for (const unsubscribe of [...ends.splice(0), ...watched.values()]) unsubscribe();
    watched.clear();
  }

  /** New lines are watched too, and lines that are gone no more. */
  async function watchLines(): Promise<void> {
    const ids = new Set((await lines.list(accountId)).map(({ id }) => id));
    for (const [id, unwatch] of watched) if (!ids.has(id) && watched.delete(id)) unwatch();
    for (const id of ids) {
      if (watched.has(id) || ended.signal.aborted) continue;
      linesChanged = true;
      watched.set(
        id,
        watchLine(id, () => {
          linesChanged = true;
          wake();
        }),
      );
    }
  }

  ends.push(events.subscribe(accountId, () => {
    eventsCame = true;
    wake();
  }));
  const stop = () => end();
  stopping.addEventListener("abort", stop);
  ends.push(() => stopping.removeEventListener("abort", stop));
  if (stopping.aborted) end();
  await watchLines();
  // The page asks when the stream is ready.
  linesChanged = false;

  async function something(): Promise<string> {
    let text = "";
    if (eventsCame) {
      eventsCame = false;
      const page = await events.read(accountId, { after, types: null, sessionId: null, limit: PAGE });
      if (page.next !== null) {
        after = page.next;
        eventsCame = page.events.length === PAGE;
        const ofLines = page.events.filter(({ event }) => event.startsWith("session."));
        if (ofLines.length > 0) linesChanged = true;
        if (ofLines.some(({ sessionId }) => !watched.has(sessionId))) await watchLines();
        for (const event of page.events) text += `event: happened\ndata: ${JSON.stringify(shown(event))}\n\n`;
      }
    }
    if (linesChanged) {
      linesChanged = false;
      text += "event: lines\ndata: {}\n\n";
    }
    return text;
  }

  return new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode("retry: 2000\nevent: ready\ndata: {}\n\n")),
    async pull(controller) {
      while (!ended.signal.aborted) {
        if (!eventsCame && !linesChanged) {
          const woken = new AbortController();
          wake = () => woken.abort();
          await sleep(runtime.clock, HEARTBEAT_MS, AbortSignal.any([woken.signal, ended.signal]));
          if (!woken.signal.aborted && !ended.signal.aborted) {
            const visitor = await guard.visitorOf(c);
            if (visitor === null) break;
            // A line that waits for its code has no event yet.
            await watchLines();
            if (linesChanged) continue;
            return controller.enqueue(encoder.encode(": still here\n\n"));
          }
        }
        await sleep(runtime.clock, PAUSE_MS, ended.signal);
        if (ended.signal.aborted) break;
        const text = await something();
        if (text === "") continue;
        // Whoever was signed out meanwhile hears no more.
        if (await guard.visitorOf(c) === null) break;
        return controller.enqueue(encoder.encode(text));
      }
      end();
      controller.close();
    },
    cancel: end,
  }, { highWaterMark: 1 });
}
