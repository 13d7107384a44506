/** The queue of a line. */
import { z } from "@hono/zod-openapi";
import { PRIORITIES } from "../../message/message.ts";
import { type Api, ok, route } from "../api/route.ts";
import { data, idOf, idParams, isoTimeOrNull, queryInt, Timestamp, WaitsFor, waitsForOf } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const QueuedMessage = z.object({
  messageId: idOf("message", "msg"),
  to: z.string(),
  status: z.enum(["queued", "processing"]),
  position: z.int().openapi({
    description: "Position in the queue. 1 is the message being sent, or the next to be sent.",
  }),
  priority: z.enum(PRIORITIES),
  estimatedDeparture: Timestamp.nullable().openapi({
    description: "Null while the session is not connected, its queue is paused, or the plan allows no new chat.",
  }),
  waitsFor: WaitsFor.nullable(),
}).openapi("QueuedMessage");

const getQueue = route({
  tag: "Sessions",
  access: "key",
  params: idParams("session", "ses"),
  method: "get",
  path: "/v1/sessions/{id}/queue",
  operationId: "getQueue",
  summary: "List queued messages",
  description: "In sending order, followed by scheduled messages. Times are estimates based on the plan's pauses, " +
    "sending hours and new-chat limit.",
  query: z.object({ limit: queryInt({ minimum: 1, maximum: 1000, fallback: 100 }) }),
  answers: { 200: data("The queued messages", z.array(QueuedMessage)) },
  problems: ["not_found"],
});

export const queueResource = { routes: [getQueue], add: addQueue };

function addQueue(api: Api, { forecast, budgets }: Pick<Services, "forecast" | "budgets">): void {
  api.on(getQueue, async ({ caller, params, query }) => {
    const party = caller.account.id;
    const queued = await budgets.reads.run({ party }, () => forecast.queue(party, params.id, { limit: query.limit }));
    return ok({
      data: queued.map(({ message, place, estimatedDepartureAt, waitsFor }) => ({
        messageId: message.id,
        to: message.to,
        status: message.status,
        position: place,
        priority: message.priority,
        estimatedDeparture: isoTimeOrNull(estimatedDepartureAt),
        waitsFor: waitsFor && waitsForOf(waitsFor),
      })),
    });
  });
}
