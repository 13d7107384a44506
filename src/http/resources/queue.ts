/** The queue of a line: what waits, and holding it. */
import { z } from "@hono/zod-openapi";
import { PRIORITIES } from "../../message/message.ts";
import { type Api, routesOf } from "../api/route.ts";
import {
  data,
  idOf,
  idParams,
  isoTimeOrNull,
  orNull,
  queryInt,
  Timestamp,
  WaitsFor,
  waitsForOf,
} from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { Session, sessionOf } from "./sessions.ts";

const QueuedMessage = z.object({
  messageId: idOf("message", "msg"),
  to: z.string(),
  status: z.enum(["queued", "processing"]),
  position: z.int().describe("Position in the queue. 1 is the message being sent, or the next to be sent."),
  priority: z.enum(PRIORITIES),
  estimatedDeparture: Timestamp.nullable().describe(
    "Null while the session is not connected, its queue is paused, or the plan allows no new chat.",
  ),
  waitsFor: orNull(WaitsFor),
}).openapi("QueuedMessage");

const ofOne = { params: idParams("session", "ses") };
const action = { ...ofOne, answers: { 200: data("The session after the action", Session) } };

const routes = routesOf("Sessions", {
  getQueue: {
    at: "GET /v1/sessions/{id}/queue",
    ...ofOne,
    summary: "List queued messages",
    description: "In sending order, followed by scheduled messages. Times are estimates based on the plan's pauses, " +
      "sending hours and new-chat limit.",
    query: z.object({ limit: queryInt({ minimum: 1, maximum: 1000, fallback: 100 }) }),
    answers: { 200: data("The queued messages", z.array(QueuedMessage)) },
  },

  pauseQueue: {
    at: "POST /v1/sessions/{id}/queue/pause",
    ...action,
    summary: "Pause the queue",
    description: "Messages are still accepted and queued, but not sent. The session stays connected. The pause " +
      "outlasts restarts.",
  },

  resumeQueue: {
    at: "POST /v1/sessions/{id}/queue/resume",
    ...action,
    summary: "Resume the queue",
  },
});

export const queueResource = { routes: Object.values(routes), add: addQueue };

function addQueue(api: Api, { forecast, lines, budgets }: Services): void {
  api.answer(routes.getQueue, async ({ accountId, params, query }) => {
    const queued = await budgets.read(accountId, () => forecast.queue(accountId, params.id, { limit: query.limit }));
    return queued.map(({ message, place, estimatedDepartureAt, waitsFor }) => ({
      messageId: message.id,
      to: message.to,
      status: message.status,
      position: place,
      priority: message.priority,
      estimatedDeparture: isoTimeOrNull(estimatedDepartureAt),
      waitsFor: waitsFor && waitsForOf(waitsFor),
    }));
  });

  for (const [declared, isPaused] of [[routes.pauseQueue, true], [routes.resumeQueue, false]] as const) {
    api.answer(declared, ({ accountId, params }) => lines.pauseQueue(accountId, params.id, isPaused), sessionOf);
  }
}
