/** The health of a line: its traffic with the network, its limits and its queue. */
import { z } from "@hono/zod-openapi";
import { type Api, routesOf } from "../api/route.ts";
import {
  data,
  idParams,
  isoTime,
  isoTimeOrNull,
  isoTimes,
  orNull,
  Timestamp,
  WaitsFor,
  waitsForOf,
} from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { Restriction, restrictionOf } from "./sessions.ts";

const Health = z.object({
  connectedSince: Timestamp.nullable().describe("When the session connected; null while it is not connected."),
  lastFrameAt: Timestamp.nullable().describe("When WhatsApp last sent anything on this connection."),
  lastReceivedAt: Timestamp.nullable().describe("When the last message was received on this connection."),
  lastSentAt: Timestamp.nullable().describe("When WhatsApp last acknowledged a message on this connection."),
  pingMs: z.int().nullable().openapi({
    description: "Round-trip time to WhatsApp, measured by this request.",
    example: 48,
  }),
  restriction: orNull(Restriction),
  newChats: z.object({ used: z.int(), limit: z.int(), resetsAt: Timestamp.nullable() }).nullable().openapi({
    description: "New chats that WhatsApp allows; null if it sets no limit or does not report one.",
    example: null,
  }),
  planNewChats: z.object({ used: z.int(), limit: z.int(), resetsAt: Timestamp }).nullable().openapi({
    description: "New chats that the plan allows today; null for no limit.",
    example: null,
  }),
  queue: z.object({
    waiting: z.int(),
    oldestSeconds: z.int(),
    waitsFor: orNull(WaitsFor),
  }),
  undecryptable: z.int().describe("Messages on this connection that could not be decrypted when they arrived."),
  webVersion: z.string().nullable().openapi({
    description: "The WhatsApp Web version that the session announces.",
    example: "2.3000.1027934701",
  }),
  webVersionSource: z.string().nullable().openapi({
    description: "Source of the version: `setting`, `built in`, or the host that it was fetched from.",
    example: "web.whatsapp.com",
  }),
  webVersionSince: Timestamp.nullable().describe(
    "When the version was fetched; if it is built in, when it was released; if set, when the gateway started.",
  ),
  webVersionExpiresAt: Timestamp.nullable().openapi({
    description: "When WhatsApp will refuse the version; null if it has not said so on this connection.",
    example: null,
  }),
}).openapi("SessionHealth");

const routes = routesOf("Sessions", {
  getSessionHealth: {
    at: "GET /v1/sessions/{id}/health",
    params: idParams("session", "ses"),
    summary: "Get session health",
    description: "Queries WhatsApp while the session is connected. Times refer to the current connection.",
    answers: { 200: data("The health of the session", Health) },
    problems: ["network_timeout"],
  },
});

export const sessionHealthResource = { routes: Object.values(routes), add: addSessionHealth };

function addSessionHealth(api: Api, { lines, forecast, budgets }: Services): void {
  api.answer(routes.getSessionHealth, async ({ accountId, params }) => {
    const { connection, connectedSince, restriction } = await lines.health(accountId, params.id);
    const load = await budgets.read(accountId, () => forecast.load(accountId, params.id));
    const { newChats: ofPlan, waitsFor, ...queue } = load;
    const { newChats, lastFrameAt = null, lastReceivedAt = null, lastSentAt = null } = connection ?? {};
    return {
      ...isoTimes({ connectedSince, lastFrameAt, lastReceivedAt, lastSentAt }),
      pingMs: connection?.pingMs ?? null,
      restriction: restriction && restrictionOf(restriction),
      newChats: newChats ? { ...newChats, resetsAt: isoTimeOrNull(newChats.resetsAt) } : null,
      planNewChats: ofPlan && { ...ofPlan, resetsAt: isoTime(ofPlan.resetsAt) },
      queue: { ...queue, waitsFor: waitsFor && waitsForOf(waitsFor) },
      undecryptable: connection?.undecryptable ?? 0,
      webVersion: connection?.webVersion.version ?? null,
      webVersionSource: connection?.webVersion.source ?? null,
      webVersionSince: isoTimeOrNull(connection?.webVersion.since ?? null),
      webVersionExpiresAt: isoTimeOrNull(connection?.webVersion.expiresAt ?? null),
    };
  });
}
