/** The feed of events and its stream: a client that was down asks for what came after the last one that it saw. */
import { Buffer } from "node:buffer";
import { z } from "@hono/zod-openapi";
import { Problem } from "../../errors.ts";
import { EVENT_ID, EVENT_NAMES, type EventName, type LoggedEvent } from "../../event/event.ts";
import { type EventLog, type EventQuery, orderOf } from "../../event/log.ts";
import { makeTails, type Tails } from "../../event/tail.ts";
import { FeedEvent, feedEventOf } from "./event_schemas.ts";
import { streamAnswer } from "../api/event_stream.ts";
import { type Api, ok, route } from "../api/route.ts";
import { queryInt } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

/** Proxies drop a connection on which nothing comes for a minute or less. */
const HEARTBEAT_MS = 15_000;
const KEEP_ALIVE = Buffer.from(": keep-alive\n\n");
/** Events read for a stream at a time. */
const STREAM_PAGE = 100;

const ANY_NAME = `\\s*(${EVENT_NAMES.join("|").replaceAll(".", "\\.")})\\s*`;

const filters = {
  after: z.string().regex(new RegExp(`^(now|${EVENT_ID})$`), "is not the id of an event").optional().openapi({
    description: "Id of the last event seen, or `now`; left out: from the oldest kept",
  }),
  types: z.string().max(1000).optional().transform(namesOf).openapi({
    type: "string",
    pattern: `^\\s*$|^${ANY_NAME}(,${ANY_NAME})*$`,
    description: `Event names, separated by commas; left out: all. Of: ${EVENT_NAMES.join(", ")}`,
    example: "message.sent,message.received",
  }),
  sessionId: z.string().max(100).optional(),
};
const base = { method: "get", tag: "Events", access: "key" } as const;

const listEvents = route({
  ...base,
  path: "/v1/events",
  operationId: "listEvents",
  summary: "Read events by cursor",
  description: "Oldest first. Give `next` as `after` to go on; when it is null, keep the cursor that you have.",
  query: z.object({
    ...filters,
    limit: queryInt({ minimum: 1, maximum: 1000, fallback: 100 }),
  }),
  answers: {
    200: {
      description: "Events after the cursor",
      schema: z.object({
        data: z.array(FeedEvent),
        next: z.string().nullable(),
        gap: z.boolean().openapi({ description: "True when events after the cursor are no longer kept" }),
      }),
    },
  },
  problems: [],
});

const streamEvents = route({
  ...base,
  path: "/v1/events/stream",
  operationId: "streamEvents",
  summary: "Receive events as they happen",
  description:
    "Server-sent events; `id` is the event's id, `event` its name, `data` what the feed shows. After a break, " +
    "`Last-Event-ID` (or `after`) goes on where it was. A comment every 15 s keeps the connection alive. The stream " +
    "ends when its key may not be used any more.",
  query: z.object(filters),
  headers: z.object({ "last-event-id": z.string().optional().openapi({ description: "Id of the last event seen" }) }),
  answers: { 200: { description: "A stream without end", schema: null, contentType: "text/event-stream" } },
  problems: ["too_much_at_once"],
});

export const eventRoutes = [listEvents, streamEvents];

type Needed = Pick<Services, "events" | "runtime" | "stopping" | "budgets">;

export function addEvents(api: Api, services: Needed): void {
  const { events, budgets, runtime } = services;
  const tails = makeTails(events, runtime.clock);
  const cursorOf = (accountId: string, after: string | null) => after === "now" ? events.newest(accountId) : after;

  api.on(listEvents, async ({ caller, query: { after: asked = null, types, sessionId = null, limit } }) => {
    const party = caller.account.id;
    const after = await cursorOf(party, asked);
    const page = await budgets.reads.run({ party }, () => events.read(party, { after, types, sessionId, limit }));
    // Whoever begins now is given a cursor, though nothing lies after it.
    const next = page.next ?? (asked === "now" ? after : null);
    return ok({ data: page.events.map(feedEventOf), next, gap: page.gap });
  });

  api.on(streamEvents, async ({ c, caller, checkKey, query: { after: asked, types, sessionId = null } }) => {
    const accountId = caller.account.id;
    const after = c.req.header("last-event-id") || asked || null;
    // A cursor that is none is refused now, while the answer can still be a problem.
    if (after !== null && after !== "now") orderOf(after);
    const place = budgets.streams.open(accountId, caller.plan.eventStreams);
    return await streamAnswer(c, place, async () => {
      const query = { after: await cursorOf(accountId, after), types, sessionId, limit: STREAM_PAGE };
      return eventStream({ ...services, tails }, { accountId, query, checkKey, place });
    });
  });
}

/**
 * Server-sent events from the cursor on. Reads the log at the reader's pace: a slow client costs a page of memory. What is
 * behind catches up in its account's turn. Ends when the key may not be used any more, before it tells anything else.
 */
function eventStream(
  { events, tails, budgets, runtime, stopping }: Needed & { tails: Tails },
  { accountId, query, checkKey, place }: {
    accountId: string;
    query: EventQuery;
    checkKey: () => Promise<void>;
    place: Disposable;
  },
): ReadableStream<Uint8Array> {
  let after = query.after;
  let wake = () => {};
  /** At first it has not looked yet. */
  let woken = true;
  /** Whether more may lie behind the last page; nobody knows what lies behind the first cursor. */
  let isBehind = true;
  let resting = false;
  const ending = new AbortController();
  const { signal } = ending;
  let unsubscribe: (() => void) | null = null;

  /** At the first read: an answer that nobody reads listens to nothing. */
  function listen(): void {
    if (unsubscribe || signal.aborted) return;
    unsubscribe = tails.subscribe(accountId, query, (since) => {
      // It has seen all that there was: between that and this lies nothing for it.
      if (resting && since !== null && (after === null || since > after)) after = since;
      resting = false;
      woken = true;
      wake();
    });
    stopping.addEventListener("abort", end);
    if (stopping.aborted) end();
  }

  function end(): void {
    ending.abort();
    place[Symbol.dispose]();
    unsubscribe?.();
    stopping.removeEventListener("abort", end);
    wake();
  }

  function read(): ReturnType<EventLog["read"]> {
    const next = () => events.read(accountId, { ...query, after });
    // Those at the end of the log share one read of what is new.
    return isBehind ? budgets.reads.run({ party: accountId, lane: "streams", signal }, next) : next();
  }

  /** Whether the key is good for what was read before this was asked. */
  async function mayTell(): Promise<boolean> {
    try {
      await checkKey();
      return true;
    } catch (error) {
      end();
      if (error instanceof Problem) return false;
      throw error;
    }
  }

  /** Resolves when there is something to read, on the end, or when it is time for a heartbeat. */
  async function rest(): Promise<void> {
    resting = true;
    await new Promise<void>((resolve) => {
      const cancel = runtime.clock.after(HEARTBEAT_MS, resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });
    resting = false;
  }

  return new ReadableStream({
    start(controller) {
      // Sent at once, so that proxies and clients know that the stream is open.
      controller.enqueue(Buffer.from("retry: 2000\n\n"));
    },
    async pull(controller) {
      listen();
      while (!signal.aborted) {
        if (!woken) {
          await rest();
          if (signal.aborted) break;
          if (!woken) {
            if (!await mayTell()) break;
            return controller.enqueue(KEEP_ALIVE);
          }
        }
        woken = false;
        const page = await read().catch((error) => {
          if (signal.aborted) return null;
          end();
          throw error;
        });
        if (!page) break;
        after = page.next ?? after;
        isBehind = page.isCut;
        // A page may be full, or with a filter empty, and yet not the last.
        if (isBehind) woken = true;
        if (page.events.length === 0) continue;
        if (!await mayTell()) break;
        return controller.enqueue(Buffer.concat(page.events.map(sse)));
      }
      controller.close();
    },
    cancel: end,
  }, { highWaterMark: 1 });
}

/** Written once for all streams that are given the same event at the same time. */
const written = new WeakMap<LoggedEvent, Uint8Array>();

function sse(event: LoggedEvent): Uint8Array {
  const before = written.get(event);
  if (before) return before;
  const shown = feedEventOf(event);
  const bytes = Buffer.from(`id: ${shown.id}\nevent: ${shown.event}\ndata: ${JSON.stringify(shown)}\n\n`);
  written.set(event, bytes);
  return bytes;
}

function namesOf(list: string | undefined, context: z.RefinementCtx): EventName[] | null {
  if (list === undefined || list.trim() === "") return null;
  return list.split(",").flatMap((part) => {
    const asked = part.trim();
    const name = EVENT_NAMES.find((known) => known === asked);
    if (name) return [name];
    context.addIssue({ code: "custom", message: `"${asked}" is no event; there are ${EVENT_NAMES.join(", ")}` });
    return [];
  });
}
