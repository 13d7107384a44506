/** The event feed and its stream: a client that was offline asks for the events after the last one that it saw. */
import { z } from "@hono/zod-openapi";
import { keysOf } from "../../base/typed_keys.ts";
import { EVENT_ID, EVENT_NAMES, type EventName } from "../../event/event.ts";
import { envelopeSchema, EVENT_SCHEMAS } from "../../event/schema.ts";
import { Tails } from "../../event/tail.ts";
import { feedEventOf, FeedStream } from "./event_stream.ts";
import { streamAnswer } from "../api/answer.ts";
import { type Api, ok, routesOf } from "../api/route.ts";
import { queryInt, rare, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const NAMES = keysOf(EVENT_SCHEMAS);

/** Each event as webhooks, feed and stream send it. */
export const EVENTS = NAMES.map((name) => ({ name, title: pascal(name) })).map(({ name, title }) => ({
  name,
  title,
  summary: EVENT_SCHEMAS[name].summary,
  schema: z.object({
    id: z.string().optional().describe(
      "Id of the event. In the feed and the stream; a webhook has it in its `webhook-id` header.",
    ),
    createdAt: Timestamp.optional().openapi(rare("ISO 8601, UTC. In the feed and the stream.")),
    ...envelopeSchema(name).shape,
  }).openapi(`${title}Event`),
}));

const [first, ...others] = EVENTS.map(({ schema }) => schema);
const AnyEvent = z.discriminatedUnion("event", [first!, ...others]).openapi("AnyEvent");

const ANY_NAME = `\\s*(${EVENT_NAMES.join("|").replaceAll(".", "\\.")})\\s*`;

const filters = {
  after: z.string().regex(new RegExp(`^(now|${EVENT_ID})$`), "is not the id of an event").optional().describe(
    "Id of the last event seen, or `now`. Defaults to the oldest event kept.",
  ),
  types: z.string().max(1000).optional().transform(namesOf).openapi({
    type: "string",
    pattern: `^\\s*$|^${ANY_NAME}(,${ANY_NAME})*$`,
    description: `Event names, separated by commas. Defaults to all except \`presence.updated\`. Names: ${
      EVENT_NAMES.join(", ")
    }.`,
    example: "message.sent,message.received",
  }),
  sessionId: z.string().max(100).optional(),
};

const routes = routesOf("Events", {
  listEvents: {
    at: "GET /v1/events",
    summary: "List events",
    description: "Oldest first. Pass `next` as `after` to continue; when it is null, keep your current cursor.",
    query: z.object({
      ...filters,
      limit: queryInt({ minimum: 1, maximum: 1000, fallback: 100 }),
    }),
    answers: {
      200: {
        description: "Events after the cursor",
        schema: z.object({
          data: z.array(AnyEvent),
          next: z.string().nullable(),
          gap: z.boolean().describe("True if some events after the cursor are no longer kept."),
        }).openapi("EventPage"),
      },
    },
  },

  streamEvents: {
    at: "GET /v1/events/stream",
    summary: "Stream events",
    description: "Server-sent events as they happen: `id` is the event's id, `event` its name, and `data` the event " +
      "as in the feed. After an interruption, `Last-Event-ID` (or `after`) resumes the stream. A comment every 15 " +
      "seconds keeps the connection alive. The stream ends when its key is no longer valid.",
    query: z.object(filters),
    headers: z.object({
      "last-event-id": z.string().optional().describe("Id of the last event seen."),
    }),
    answers: { 200: { description: "The stream", schema: AnyEvent, contentType: "text/event-stream" } },
    problems: ["too_much_at_once"],
  },
});

export const eventResource = { routes: Object.values(routes), add: addEvents };

function addEvents(api: Api, services: Services): void {
  const { events, budgets, runtime } = services;
  const tails = new Tails(events, runtime.clock);
  const cursorOf = async (accountId: string, after: string | null, path = "after") => {
    if (after === "now") return await events.newest(accountId);
    if (after !== null) await events.checkCursor(accountId, after, path);
    return after;
  };

  api.on(routes.listEvents, async ({ accountId, query: { after: asked = null, types, sessionId = null, limit } }) => {
    const after = await cursorOf(accountId, asked);
    const page = await budgets.read(accountId, () => events.read(accountId, { after, types, sessionId, limit }));
    // A client that starts with `now` gets a cursor, although no event follows it.
    const next = page.next ?? (asked === "now" ? after : null);
    return ok({ data: page.events.map(feedEventOf), next, gap: page.gap });
  });

  api.on(routes.streamEvents, async (request) => {
    const { c, caller, accountId, checkKey, query: { after: asked, types, sessionId = null } } = request;
    const header = c.req.header("last-event-id") || null;
    // An invalid cursor is refused here, while the answer can still be a problem document.
    const after = await cursorOf(accountId, header ?? asked ?? null, header === null ? "after" : "Last-Event-ID");
    const place = budgets.streams.open(accountId, caller.plan.eventStreams);
    const open = () => {
      const query = { after, types, sessionId };
      return new FeedStream({ ...services, tails }, { accountId, query, checkKey, place }).open();
    };
    return streamAnswer(c, place, open);
  });
}

function namesOf(list: string | undefined, context: z.RefinementCtx): EventName[] | null {
  if (list === undefined || list.trim() === "") return null;
  return list.split(",").flatMap((part) => {
    const asked = part.trim();
    const name = EVENT_NAMES.find((known) => known === asked);
    if (name) return [name];
    context.addIssue({
      code: "custom",
      message: `"${asked}" is not an event; the events are ${EVENT_NAMES.join(", ")}`,
    });
    return [];
  });
}

/** `RecipientOptedOut` for `recipient.opted_out`. */
function pascal(name: string): string {
  return name.split(/[._]/).map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
}
