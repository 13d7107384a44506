/** The delivery log of a webhook, and redelivery (spec, "Webhooks"). */
import { z } from "@hono/zod-openapi";
import { EVENT_NAMES } from "../../event/event.ts";
import { type Delivery, DELIVERY_STATUSES } from "../../webhook/webhook.ts";
import { type Api, ok, routesOf } from "../api/route.ts";
import { data, idParams, isoTime, isoTimes, pageBy, queryInt, shownAs, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const deliveryId = z.string().regex(/^dlv_[0-9a-z]{11,80}$/, "is not the id of a delivery").openapi({
  description: "Id of the delivery.",
  example: "dlv_0000000000421y5z7abcde",
});

const DeliveryRecord = z.object({
  id: deliveryId,
  eventId: z.string().openapi({ example: "evt_0000000000000042" }),
  event: z.enum(EVENT_NAMES),
  status: z.enum(DELIVERY_STATUSES),
  attempts: z.array(
    z.object({
      at: Timestamp,
      status: z.int().nullable().describe("HTTP status of the response; null if there was none."),
      durationMs: z.number(),
      error: z.string().nullable(),
    }).openapi("DeliveryAttempt"),
  ),
  createdAt: Timestamp,
  nextAttemptAt: Timestamp.nullable().describe(
    "When the next attempt is due; null if none is, or while the webhook is not active.",
  ),
}).openapi("Delivery");

const params = idParams("webhook", "whk");

const routes = routesOf("Webhooks", {
  listDeliveries: {
    at: "GET /v1/webhooks/{id}/deliveries",
    params,
    summary: "List deliveries",
    description: "Newest event first.",
    query: z.object({
      status: z.enum(DELIVERY_STATUSES).optional(),
      before: deliveryId.optional().describe("`next` of the previous page."),
      limit: queryInt({ minimum: 1, maximum: 100, fallback: 20 }),
    }),
    answers: {
      200: pageBy("A page of deliveries", DeliveryRecord, "Pass as `before` for the next page; null on the last page."),
    },
  },

  redeliver: {
    at: "POST /v1/webhooks/{id}/deliveries/{deliveryId}/redeliver",
    summary: "Redeliver an event",
    params: params.extend({ deliveryId }),
    answers: { 200: data("The delivery", DeliveryRecord) },
  },

  redeliverSince: {
    at: "POST /v1/webhooks/{id}/redeliver",
    params,
    summary: "Redeliver all events since a time",
    body: z.strictObject({ since: z.iso.datetime({ offset: true }).openapi({ example: "2026-01-15T12:00:00Z" }) })
      .openapi("RedeliverSince"),
    answers: { 200: data("The number of deliveries scheduled", z.object({ scheduled: z.int() })) },
  },
});

export const deliveryResource = { routes: Object.values(routes), add: addDeliveries };

function addDeliveries(api: Api, { deliveries, budgets }: Services): void {
  api.on(routes.listDeliveries, async ({ accountId, params, query: { status = null, before = null, limit } }) => {
    const asked = { status, before, limit };
    const page = await budgets.read(accountId, () => deliveries.page(accountId, params.id, asked));
    return ok({ data: page.deliveries.map(deliveryOf), next: page.next });
  });

  api.answer(routes.redeliver, async ({ accountId, params }) => {
    return deliveryOf(await deliveries.redeliver(accountId, params.id, params.deliveryId));
  });

  api.answer(routes.redeliverSince, async ({ accountId, params, body }) => {
    const since = Date.parse(body.since);
    const { scheduled } = await budgets.job(accountId, () => deliveries.redeliverSince(accountId, params.id, since));
    return { scheduled };
  });
}

function deliveryOf(delivery: Delivery): z.infer<typeof DeliveryRecord> {
  const { createdAt, nextAttemptAt } = delivery;
  const attempts = delivery.attempts.map((attempt) => ({ ...attempt, at: isoTime(attempt.at) }));
  return shownAs(DeliveryRecord, delivery, { attempts, ...isoTimes({ createdAt, nextAttemptAt }) });
}
