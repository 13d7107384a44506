/** Accepted bulks: their progress, and cancelling the rest. */
import { z } from "@hono/zod-openapi";
import { Problem } from "../../errors.ts";
import { type Api, ok, routesOf } from "../api/route.ts";
import { data, idOf, idParams, isoTime, isoTimeOrNull, pageOf, pageQuery, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const Bulk = z.object({
  bulkId: idOf("bulk", "blk"),
  sessionId: idOf("session", "ses"),
  total: z.int(),
  queued: z.int().describe("Messages that are neither sent nor failed yet."),
  sent: z.int(),
  failed: z.int().describe("Includes cancelled messages."),
  eta: Timestamp.nullable().describe(
    "Estimated time of the last message; null if none is waiting or there is no estimate.",
  ),
  createdAt: Timestamp,
}).openapi("Bulk");

const ofOne = { params: idParams("bulk", "blk") };
const one = data("The bulk", Bulk);

const routes = routesOf("Messages", {
  listBulks: {
    at: "GET /v1/bulks",
    summary: "List bulks",
    description: "Newest first.",
    query: z.object(pageQuery),
    answers: { 200: pageOf(Bulk) },
  },

  getBulk: {
    at: "GET /v1/bulks/{id}",
    ...ofOne,
    summary: "See how far a bulk is",
    answers: { 200: one },
  },

  cancelBulk: {
    at: "DELETE /v1/bulks/{id}",
    ...ofOne,
    summary: "Cancel the rest of a bulk",
    description: "Messages not yet handed to WhatsApp end as `failed` with the error code `cancelled`, and their " +
      "quota is returned. If there is nothing left to cancel, the call succeeds.",
    answers: { 200: { ...one, description: "The bulk after cancelling" } },
  },
});

export const bulkResource = { routes: Object.values(routes), add: addBulks };

function addBulks(api: Api, { history, queued: waiting, forecast, budgets }: Services): void {
  async function bulkOf(accountId: string, bulkId: string): Promise<z.infer<typeof Bulk>> {
    const { bulk, queued, sent, failed, etaAt } = await forecast.bulk(accountId, bulkId);
    const { sessionId, total, createdAt } = bulk;
    return { bulkId, sessionId, total, queued, sent, failed, eta: isoTimeOrNull(etaAt), createdAt: isoTime(createdAt) };
  }

  api.on(routes.listBulks, async ({ caller: { account }, query: { page, limit } }) => {
    return await budgets.read(account.id, async () => {
      const { ids, total } = await history.bulkIds(account.id, { page, limit });
      const bulks = await Promise.all(ids.map((id) => bulkOf(account.id, id).catch(nullIfGone)));
      const data = bulks.filter((bulk) => bulk !== null);
      return ok({ data, pagination: { page, limit, total } });
    });
  });

  api.answer(routes.getBulk, ({ accountId, params: { id } }) => budgets.read(accountId, () => bulkOf(accountId, id)));

  api.answer(routes.cancelBulk, async ({ accountId, params: { id } }) => {
    await budgets.job(accountId, () => waiting.cancelBulk(accountId, id));
    return await bulkOf(accountId, id);
  });
}

/** Retention may remove a bulk after the list was read. */
function nullIfGone(error: unknown): null {
  if (error instanceof Problem && error.code === "not_found") return null;
  throw error;
}
