/** Schemas of events for the reference: those of `event/schema.ts` in the envelopes of webhooks and the feed. */
import { keysOf } from "../../base/typed_keys.ts";
import { z } from "@hono/zod-openapi";
import type { LoggedEvent } from "../../event/event.ts";
import { envelopeSchema, EVENT_SCHEMAS } from "../../event/schema.ts";
import { isoTime, Timestamp } from "../api/schemas.ts";

const NAMES = keysOf(EVENT_SCHEMAS);

/** The webhook body of each event. */
export const WEBHOOK_BODIES = NAMES.map((name) => ({
  name,
  summary: EVENT_SCHEMAS[name].summary,
  schema: z.object(envelopeSchema(name).shape).openapi(`${pascal(name)}Event`),
}));

/** An event in the feed: the envelope, its id and its time. */
export const FeedEvent = z.union(NAMES.map((name) =>
  z.object({
    id: z.string().openapi({ description: "Never changes; also the `webhook-id` of its deliveries" }),
    createdAt: Timestamp,
    ...envelopeSchema(name).shape,
  })
)).openapi("Event");

/** Returns an event in the form of the feed and the stream. */
export function feedEventOf({ id, createdAt, event, sessionId, sessionName, data }: LoggedEvent) {
  return { id, event, sessionId, sessionName, createdAt: isoTime(createdAt), data };
}

function pascal(name: string): string {
  return name.split(".").map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
}
