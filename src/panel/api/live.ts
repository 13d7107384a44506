/**
 * One event stream per tab: the names of an account's events as they happen, and a notice when one of its lines has
 * changed, after which the page reloads its data. For an operator, a notice when any line has changed. An idle stream
 * costs nothing, and streams do not count towards a rate limit.
 */
import { Tally } from "../../http/edge/budgets.ts";
import { sleep } from "../../runtime.ts";
import type { ApiContext } from "../../http/api/route.ts";
import { streamAnswer } from "../../http/api/answer.ts";
import type { Parts } from "./parts.ts";

const HEARTBEAT_MS = 20_000;
/** Changes within this time are sent together; pages need not redraw more often. */
const PAUSE_MS = 200;
const PAGE = 50;
/** Limit of open streams, per account and for all operators together. Each one reads the events as they happen. */
const MOST_TABS = 50;
/** A heartbeat, by which the page detects a dead connection. */
const ALIVE = "event: alive\ndata: {}\n\n";
const LINES_CHANGED = "event: lines\ndata: {}\n\n";

export function addLive(parts: Parts): void {
  const { guard } = parts;
  const tabs = new Tally("pages open", { inAll: Infinity, each: MOST_TABS, free: 0 });

  function answer(c: ApiContext, name: string, open: (wake: () => void) => Promise<Source>): Promise<Response> {
    const place = tabs.open(name);
    return streamAnswer(c, place, () => liveStream(parts, c, { place, open }));
  }

  guard.account({ method: "GET", path: "/accounts/:accountId/live", agents: true }, ({ c, account: { id } }) => {
    return answer(c, id, (wake) => ofAccount(parts, id, wake));
  });
  guard.operator({ method: "GET", path: "/operator/live" }, ({ c }) => {
    return answer(c, "operators", (wake) => Promise.resolve(ofAllLines(parts, wake)));
  });
}

/** The source of a stream. It wakes the stream when there may be something to send. */
interface Source {
  /** Whether there may be something to send now. */
  isAwake(): boolean;
  /** Resolves to what is new, as frames; "" if nothing is. */
  take(): Promise<string>;
  /** Checks for changes that do not wake the stream. */
  look(): Promise<void>;
  end(): void;
}

function ofAllLines({ watchAllLines }: Parts, wake: () => void): Source {
  let changed = false;
  return {
    isAwake: () => changed,
    take() {
      const text = changed ? LINES_CHANGED : "";
      changed = false;
      return Promise.resolve(text);
    },
    look: () => Promise.resolve(),
    end: watchAllLines(() => {
      changed = true;
      wake();
    }),
  };
}

async function ofAccount(
  { events, lines, watchLine }: Parts,
  accountId: string,
  wake: () => void,
): Promise<Source> {
  const watched = new Map<string, () => void>();
  let isOver = false;
  let linesChanged = false;
  let eventsCame = false;
  let after = await events.newest(accountId);

  /** Starts watching new lines, and stops watching deleted ones. */
  async function watchLines(): Promise<void> {
    const ids = new Set((await lines.list(accountId)).map(({ id }) => id));
    for (const [id, unwatch] of watched) if (!ids.has(id) && watched.delete(id)) unwatch();
    for (const id of ids) {
      if (watched.has(id) || isOver) continue;
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

  const unsubscribe = events.subscribe(accountId, () => {
    eventsCame = true;
    wake();
  });
  const source: Source = {
    isAwake: () => eventsCame || linesChanged,
    async take() {
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
          const names = [...new Set(page.events.map(({ event }) => event))];
          if (names.length > 0) text += `event: happened\ndata: ${JSON.stringify(names)}\n\n`;
        }
      }
      if (linesChanged) text += LINES_CHANGED;
      linesChanged = false;
      return text;
    },
    // A line that still waits for its code has caused no event.
    look: watchLines,
    end() {
      isOver = true;
      unsubscribe();
      for (const unwatch of watched.values()) unwatch();
      watched.clear();
    },
  };
  try {
    await watchLines();
  } catch (error) {
    source.end();
    throw error;
  }
  // The page loads everything when the stream is ready.
  linesChanged = false;
  return source;
}

async function liveStream(
  { guard, runtime: { clock }, stopping }: Parts,
  c: ApiContext,
  { place, open }: { place: Disposable; open: (wake: () => void) => Promise<Source> },
): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const cancelled = new AbortController();
  const ended = AbortSignal.any([cancelled.signal, stopping]);
  let wake = () => {};
  const source = await open(() => wake());
  const end = () => {
    place[Symbol.dispose]();
    source.end();
  };

  /** Resolves to true when the source wakes the stream, to false when a heartbeat is due first. */
  async function untilAwake(): Promise<boolean> {
    if (source.isAwake()) return true;
    const woken = new AbortController();
    wake = () => woken.abort();
    await sleep(clock, HEARTBEAT_MS, AbortSignal.any([woken.signal, ended]));
    return woken.signal.aborted;
  }

  /** Resolves to the next text to write; null at the end. */
  async function next(): Promise<string | null> {
    while (!ended.aborted) {
      const isAwake = await untilAwake();
      if (isAwake) await sleep(clock, PAUSE_MS, ended);
      if (ended.aborted) return null;
      const text = isAwake ? await source.take() : ALIVE;
      if (text === "") continue;
      // A person who has been signed out in the meantime gets nothing more.
      if (await guard.visitorOf(c) === null) return null;
      if (!isAwake) await source.look();
      return text;
    }
    return null;
  }

  return new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode("retry: 2000\nevent: ready\ndata: {}\n\n")),
    async pull(controller) {
      try {
        const text = await next();
        if (text !== null) return controller.enqueue(encoder.encode(text));
      } catch (error) {
        // A stream that has failed is not cancelled.
        end();
        throw error;
      }
      end();
      controller.close();
    },
    cancel() {
      cancelled.abort();
      end();
    },
  }, { highWaterMark: 1 });
}
