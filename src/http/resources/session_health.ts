/** The health of a line: its traffic with the network, its limits and its queue. */
import { z } from "@hono/zod-openapi";
import { type Api, ok, route } from "../api/route.ts";
import { data, idParams, isoTime, isoTimeOrNull, Timestamp, WaitsFor, waitsForOf } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { Restriction, restrictionOf } from "./sessions.ts";

const Health = z.object({
  connectedSince: Timestamp.nullable().openapi({ description: "null while it is not connected" }),
  lastFrameAt: Timestamp.nullable().openapi({ description: "When the network last said anything" }),
  lastReceivedAt: Timestamp.nullable().openapi({ description: "When a message last came, on this connection" }),
  lastSentAt: Timestamp.nullable().openapi({ description: "When the network last acknowledged a message" }),
  pingMs: z.int().nullable().openapi({ description: "How long the network took to answer just now", example: 48 }),
  restriction: Restriction.nullable(),
  newChats: z.object({ used: z.int(), limit: z.int(), resetsAt: Timestamp.nullable() }).nullable().openapi({
    description: "How many chats the account may start; null where the network sets no limit or does not tell",
    example: null,
  }),
  planNewChats: z.object({ used: z.int(), limit: z.int(), resetsAt: Timestamp }).nullable().openapi({
    description: "How many chats the plan lets the session start today; null: no limit",
    example: null,
  }),
  queue: z.object({
    waiting: z.int(),
    oldestSeconds: z.int(),
    waitsFor: WaitsFor.nullable(),
  }),
  undecryptable: z.int().openapi({ description: "Messages of this connection that could not be read at first" }),
  webVersion: z.string().nullable().openapi({
    description: "The version of WhatsApp Web that is announced",
    example: "2.3000.1027934701",
  }),
  webVersionSource: z.string().nullable().openapi({
    description: "Where that version is from: `setting`, `web.whatsapp.com`, or `built in`",
    example: "web.whatsapp.com",
  }),
  webVersionSince: Timestamp.nullable().openapi({ description: "When it was learned; of one that was not, the start" }),
}).openapi("SessionHealth");

const getSessionHealth = route({
  tag: "Sessions",
  access: "key",
  params: idParams("session", "ses"),
  method: "get",
  path: "/v1/sessions/{id}/health",
  operationId: "getSessionHealth",
  summary: "Ask how the line is",
  description: "Asks the network while the session is connected; times are of the present connection.",
  answers: { 200: data("Signs of life", Health) },
  problems: ["not_found"],
});

export const sessionHealthResource = { routes: [getSessionHealth], add: addSessionHealth };

type Needed = Pick<Services, "lines" | "forecast" | "budgets">;

function addSessionHealth(api: Api, { lines, forecast, budgets }: Needed): void {
  api.on(getSessionHealth, async ({ caller, params }) => {
    const party = caller.account.id;
    const { connection, connectedSince, restriction } = await lines.health(party, params.id);
    const load = await budgets.reads.run({ party }, () => forecast.load(party, params.id));
    const { newChats: ofPlan, waitsFor, ...queue } = load;
    const { newChats } = connection ?? {};
    return ok({
      data: {
        connectedSince: isoTimeOrNull(connectedSince),
        lastFrameAt: isoTimeOrNull(connection?.lastFrameAt ?? null),
        lastReceivedAt: isoTimeOrNull(connection?.lastReceivedAt ?? null),
        lastSentAt: isoTimeOrNull(connection?.lastSentAt ?? null),
        pingMs: connection?.pingMs ?? null,
        restriction: restriction && restrictionOf(restriction),
        newChats: newChats ? { ...newChats, resetsAt: isoTimeOrNull(newChats.resetsAt) } : null,
        planNewChats: ofPlan && { ...ofPlan, resetsAt: isoTime(ofPlan.resetsAt) },
        queue: { ...queue, waitsFor: waitsFor && waitsForOf(waitsFor) },
        undecryptable: connection?.undecryptable ?? 0,
        webVersion: connection?.webVersion.version ?? null,
        webVersionSource: connection?.webVersion.source ?? null,
        webVersionSince: isoTimeOrNull(connection?.webVersion.since ?? null),
      },
    });
  });
}
