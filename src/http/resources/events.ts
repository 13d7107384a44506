/** The feed of events and its stream: a client that was down asks for what came after the last one that it saw. */
import { z } from "@hono/zod-openapi";
import { Problem } from "../../errors.ts";
import { EVENT_ID, EVENT_NAMES, type EventName } from "../../event/event.ts";
import type { EventQuery } from "../../event/log.ts";
import { FeedEvent, feedEventOf } from "./event_schemas.ts";
import { type Api, ok, route } from "../api/route.ts";
import { queryInt } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

/** Proxies drop a connection on which nothing comes for a minute or less. */
const HEARTBEAT_MS = 15_000;
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
  const { events, budgets } = services;
  const cursorOf = (accountId: string, after: string | null) => after === "now" ? events.newest(accountId) : after;

  api.on(listEvents, async ({ caller, query: { after: asked = null, types, sessionId = null, limit } }) => {
    const party = caller.account.id;
    const after = await cursorOf(party, asked);
    const page = await budgets.reads.run({ party }, () => events.read(party, { after, types, sessionId, limit }));
    // Whoever begins now is given a cursor, though nothing lies after it.
    const next = page.next ?? (asked === "now" ? after : null);
    return ok({ data: page.events.map(feedEventOf), next, gap: page.gap });
  });

  api.on(streamEvents, async ({ c, caller, checkKey, query: { after, types, sessionId = null } }) => {
    const accountId = caller.account.id;
    const cursor = await cursorOf(accountId, c.req.header("last-event-id") || after || null);
    const query = { after: cursor, types, sessionId, limit: STREAM_PAGE };
    // A cursor that is none is refused now, while the answer can still be a problem.
    await events.read(accountId, { ...query, limit: 1 });
    const place = budgets.streams.open(accountId, caller.plan.eventStreams);
    // Nobody reads the answer to HEAD, or closes it.
    if (c.req.method === "GET") place.add(1);
    return c.body(eventStream(services, { accountId, query, checkKey, place }), 200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
  });
}

/**
 * Server-sent events from the cursor on. Reads the log at the reader's pace: a slow client costs a page of memory. Ends
 * when the key may not be used any more, before it tells anything else.
 */
function eventStream(
  { events, runtime, stopping }: Needed,
  { accountId, query, checkKey, place }: {
    accountId: string;
    query: EventQuery;
    checkKey: () => Promise<void>;
    place: Disposable;
  },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let after = query.after;
  let wake = () => {};
  let woken = false;
  let ended = false;
  let unsubscribe: (() => void) | null = null;

  /** At the first read: an answer that nobody reads, such as one to HEAD, listens to nothing. */
  function listen(): void {
    if (unsubscribe || ended) return;
    unsubscribe = events.subscribe(accountId, () => {
      woken = true;
      wake();
    });
    stopping.addEventListener("abort", end);
    if (stopping.aborted) end();
  }

  function end(): void {
    ended = true;
    place[Symbol.dispose]();
    unsubscribe?.();
    stopping.removeEventListener("abort", end);
    wake();
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

  /** Resolves on the next event of the account, on the end, or when it is time for a heartbeat. */
  function rest(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = runtime.clock.after(HEARTBEAT_MS, resolve);
      wake = () => {
        cancel();
        resolve();
      };
      if (woken || ended) wake();
    });
  }

  return new ReadableStream({
    start(controller) {
      // Sent at once, so that proxies and clients know that the stream is open.
      controller.enqueue(encoder.encode("retry: 2000\n\n"));
    },
    async pull(controller) {
      listen();
      while (!ended) {
        woken = false;
        const page = await events.read(accountId, { ...query, after }).catch((error) => {
          end();
          throw error;
        });
        after = page.next ?? after;
        if (page.events.length > 0) {
          if (!await mayTell()) break;
          return controller.enqueue(encoder.encode(page.events.map(feedEventOf).map(sse).join("")));
        }
        // With a filter a page may be empty and yet not the last.
        if (page.next !== null) continue;
        await rest();
        if (woken || ended) continue;
        if (await mayTell()) return controller.enqueue(encoder.encode(": keep-alive\n\n"));
      }
      controller.close();
    },
    cancel: end,
  }, { highWaterMark: 1 });
}

function sse(event: ReturnType<typeof feedEventOf>): string {
  return `id: ${event.id}\nevent: ${event.event}\ndata: ${JSON.stringify(event)}\n\n`;
}

function namesOf(list: string | undefined, context: z.RefinementCtx): EventName[] | null {
  if (list === undefined || list.trim() === "") return null;
  const names = list.split(",").map((name) => name.trim());
  for (const name of names) {
    if (!EVENT_NAMES.includes(name as EventName)) {
      context.addIssue({ code: "custom", message: `"${name}" is no event; there are ${EVENT_NAMES.join(", ")}` });
    }
  }
  return names as EventName[];
}
