/** The event feed as a stream of server-sent events, for as long as its key is valid. */
import { Buffer } from "node:buffer";
import { Problem } from "../../errors.ts";
import type { LoggedEvent } from "../../event/event.ts";
import type { EventLog, EventQuery } from "../../event/event_log.ts";
import type { Tails } from "../../event/tail.ts";
import { isoTime } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

/** Proxies drop connections that are silent for a minute or less. */
const HEARTBEAT_MS = 15_000;
const KEEP_ALIVE = Buffer.from(": keep-alive\n\n");
/** Events read for a stream at a time. */
const STREAM_PAGE = 100;

interface StreamDeps extends Pick<Services, "events" | "runtime" | "stopping" | "budgets"> {
  tails: Tails;
}

interface StreamOptions {
  accountId: string;
  query: Omit<EventQuery, "limit">;
  checkKey: () => Promise<void>;
  place: Disposable;
}

/**
 * Server-sent events from the cursor on. Reads the log at the client's pace, so that a slow client costs one page of
 * memory. A stream with a backlog reads it in its account's turn. Checks the key before it writes, and ends when the
 * key may no longer be used.
 */
export class FeedStream {
  readonly #deps: StreamDeps;
  readonly #options: StreamOptions;
  readonly #ending = new AbortController();
  #after: string | null;
  /** Whether there may be new events; true until the first read. */
  #woken = true;
  /** Whether there may be a backlog after the last page; unknown at first, and so true. */
  #isBehind = true;
  #resting = false;
  #wake = () => {};
  #unsubscribe: (() => void) | null = null;

  constructor(deps: StreamDeps, options: StreamOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#after = options.query.after;
  }

  open(): ReadableStream<Uint8Array> {
    return new ReadableStream({
      // Sent at once, to show proxies and clients that the stream is open.
      start: (controller) => controller.enqueue(Buffer.from("retry: 2000\n\n")),
      pull: async (controller) => {
        const bytes = await this.#next();
        if (bytes === null) controller.close();
        else controller.enqueue(bytes);
      },
      cancel: this.#end,
    }, { highWaterMark: 1 });
  }

  /** Resolves to the next bytes to write; null at the end. */
  async #next(): Promise<Uint8Array | null> {
    this.#listen();
    while (!this.#isOver) {
      if (!this.#woken) {
        await this.#rest();
        if (this.#isOver) return null;
        if (!this.#woken) return await this.#mayShow() ? KEEP_ALIVE : null;
      }
      this.#woken = false;
      const page = await this.#read();
      if (!page) return null;
      this.#after = page.next ?? this.#after;
      // A page that was cut, even an empty one with a filter, is not the last.
      this.#isBehind = page.isCut;
      if (page.isCut) this.#woken = true;
      if (page.events.length > 0) return await this.#mayShow() ? Buffer.concat(page.events.map(sse)) : null;
    }
    return null;
  }

  /** Subscribes to new events, at the first read, so that a stream that is never read subscribes to nothing. */
  #listen(): void {
    if (this.#unsubscribe || this.#isOver) return;
    const { tails, stopping } = this.#deps;
    const { accountId, query } = this.#options;
    this.#unsubscribe = tails.subscribe(accountId, query, (since) => {
      // The stream is up to date, so there are no events for it between its cursor and `since`.
      if (this.#resting && since !== null && (this.#after === null || since > this.#after)) this.#after = since;
      this.#resting = false;
      this.#woken = true;
      this.#wake();
    });
    stopping.addEventListener("abort", this.#end);
    if (stopping.aborted) this.#end();
  }

  get #isOver(): boolean {
    return this.#ending.signal.aborted;
  }

  readonly #end = (): void => {
    this.#ending.abort();
    this.#options.place[Symbol.dispose]();
    this.#unsubscribe?.();
    this.#deps.stopping.removeEventListener("abort", this.#end);
    this.#wake();
  };

  /** Resolves to the next page; null if the stream ended in the meantime. */
  async #read(): Promise<Awaited<ReturnType<EventLog["read"]>> | null> {
    const { events, budgets } = this.#deps;
    const { accountId, query } = this.#options;
    const { signal } = this.#ending;
    const next = () => events.read(accountId, { ...query, after: this.#after, limit: STREAM_PAGE });
    try {
      // Streams at the end of the log share one read of new events.
      if (!this.#isBehind) return await next();
      return await budgets.reads.run({ tenant: accountId, lane: "streams", signal }, next);
    } catch (error) {
      if (signal.aborted) return null;
      this.#end();
      throw error;
    }
  }

  /** Resolves to whether the key is still valid, so that what was read before may be written. */
  async #mayShow(): Promise<boolean> {
    try {
      await this.#options.checkKey();
      return true;
    } catch (error) {
      this.#end();
      if (error instanceof Problem) return false;
      throw error;
    }
  }

  /** Resolves when there are new events, when the stream ends, or when a heartbeat is due. */
  async #rest(): Promise<void> {
    this.#resting = true;
    await new Promise<void>((resolve) => {
      const cancel = this.#deps.runtime.clock.after(HEARTBEAT_MS, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
    this.#resting = false;
  }
}

/** Encoded events, shared by all streams that get the same event at the same time. */
const written = new WeakMap<LoggedEvent, Uint8Array>();

function sse(event: LoggedEvent): Uint8Array {
  const before = written.get(event);
  if (before) return before;
  const shown = feedEventOf(event);
  const bytes = Buffer.from(`id: ${shown.id}\nevent: ${shown.event}\ndata: ${JSON.stringify(shown)}\n\n`);
  written.set(event, bytes);
  return bytes;
}

/** Returns an event in the form of the feed and the stream. */
export function feedEventOf({ id, createdAt, event, sessionId, sessionName, data }: LoggedEvent) {
  return { id, event, sessionId, sessionName, createdAt: isoTime(createdAt), data };
}
