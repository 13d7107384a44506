/** Webhooks, to which events are posted (spec, "Webhooks"); `deliveries.ts` has their delivery log. */
import { z } from "@hono/zod-openapi";
import { EVENT_NAMES, type EventName } from "../../event/event.ts";
import { FORMAT_NAMES } from "../../webhook/format.ts";
import { CHATS, type ShownWebhook } from "../../webhook/webhook.ts";
import type { MadeWebhook } from "../../webhook/webhooks.ts";
import { madeOnce } from "../api/idempotency.ts";
import { type Api, created, routesOf } from "../api/route.ts";
import { data, idOf, idParams, isoTimes, rare, shownAs, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { given } from "./network_queries.ts";

const EventNames = z.array(z.enum(EVENT_NAMES).openapi("EventName"));

const Chats = z.enum(CHATS).openapi("WebhookChats", {
  description:
    "Whether events of all chats are delivered, of 1:1 chats, or of groups. Events about no chat always are.",
});

const Format = z.enum(FORMAT_NAMES).openapi("WebhookFormat", {
  description: "The shape of the requests: `paloma`, as described here, or `cloud`, that of WhatsApp's Cloud API.",
});

/** What the gateway sets itself, or what would change how the request is read. */
const RESERVED =
  /^(?:host|connection|content-.*|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*|accept-encoding|webhook-.*|x-webhook-signature.*|x-hub-.*)$/i;
const MOST_HEADERS = 20;

const Headers = z.record(
  z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "is not the name of a header"),
  z.string().max(4096).regex(
    /^(?:[\x21-\x7e]+(?:[ \t]+[\x21-\x7e]+)*)?$/,
    "must be printable ASCII without blanks around it",
  ),
).check((ctx) => {
  const names = Object.keys(ctx.value);
  const wrong = (name: string, message: string) =>
    ctx.issues.push({ code: "custom", input: ctx.value, path: [name], message });
  if (names.length > MOST_HEADERS) {
    ctx.issues.push({ code: "custom", input: ctx.value, message: `has more than ${MOST_HEADERS} headers` });
  }
  for (const [i, name] of names.entries()) {
    if (RESERVED.test(name)) wrong(name, "is set by the gateway");
    else if (names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) < i) wrong(name, "is given twice");
  }
}).openapi({
  description: "Headers sent with every request, such as `Authorization`. Stored encrypted and never shown.",
  example: { Authorization: "Basic cGFsb21hOnNlY3JldA==" },
});

const webhookFields = {
  id: idOf("webhook", "whk"),
  url: z.string().openapi({ example: "https://example.com/paloma" }),
  format: Format,
  events: EventNames,
  sessionId: z.string().nullable().describe("Only events of this session; null for all sessions."),
  chats: Chats,
  headerNames: z.array(z.string()).openapi({
    description: "Names of the additional headers, in lower case. Their values are never shown.",
    example: ["authorization"],
  }),
  active: z.boolean(),
  switchedOff: z.string().nullable().describe("Why the gateway disabled the webhook; null if it did not."),
  failingSince: Timestamp.nullable().describe(
    "Since when every finished delivery has failed; null if the latest one succeeded.",
  ),
  previousSecretUntil: Timestamp.nullable().describe("Until when requests are also signed with the previous secret."),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};
const WebhookRecord = z.object(webhookFields).openapi("Webhook");
const WebhookWithSecret = z.object({
  ...webhookFields,
  secret: z.string().openapi({
    description: "Secret for verifying signatures. Shown only in this response.",
    example: "whsec_…",
  }),
}).openapi("WebhookWithSecret");

const url = z.string().max(2048, { abort: true }).check(
  z.url({ protocol: /^https?$/, error: "must be an https URL" }),
).openapi({
  description: "HTTPS URL to which events are posted. Plain HTTP is accepted for hosts that the operator allows.",
  example: "https://example.com/paloma",
});
const events = EventNames.min(1).max(100).transform(unique);

const WebhookCreation = z.strictObject({
  url,
  format: Format.nullish().openapi(rare("Defaults to `paloma`.")),
  verifyToken: z.string().min(1).max(512).nullish().openapi(
    rare(
      "Of the format `cloud`, which needs it: at creation and when the URL is changed, the target is asked " +
        "`GET ?hub.mode=subscribe&hub.verify_token=…&hub.challenge=…`, and must answer with the challenge.",
    ),
  ),
  events: events.nullish().describe(
    "Events to subscribe to. Defaults to all except `presence.updated`; in the format `cloud`, to those " +
      "that it can tell.",
  ),
  sessionId: z.string().min(1).max(100).nullish().describe(
    "Restrict the webhook to one session. Defaults to all sessions.",
  ),
  chats: Chats.nullish().describe("Defaults to `all`, in the format `cloud` to `direct`."),
  headers: Headers.nullish(),
}).openapi("WebhookCreation");

const WebhookChange = z.strictObject({
  url: url.nullish(),
  events: events.nullish(),
  chats: Chats.nullish(),
  headers: Headers.nullish().describe("Replaces all additional headers; `{}` removes them."),
  active: z.boolean().nullish(),
}).openapi("WebhookChange");

const params = idParams("webhook", "whk");

const routes = routesOf("Webhooks", {
  listWebhooks: {
    at: "GET /v1/webhooks",
    summary: "List webhooks",
    answers: { 200: data("All webhooks, oldest first", z.array(WebhookRecord)) },
  },

  createWebhook: {
    at: "POST /v1/webhooks",
    summary: "Create a webhook",
    body: WebhookCreation,
    repeats: "handler",
    answers: { 201: data("The webhook with its secret", WebhookWithSecret) },
    problems: ["not_found"],
  },

  getWebhook: {
    at: "GET /v1/webhooks/{id}",
    params,
    summary: "Get a webhook",
    answers: { 200: data("The webhook", WebhookRecord) },
  },

  updateWebhook: {
    at: "PUT /v1/webhooks/{id}",
    params,
    summary: "Update a webhook",
    description: "Omitted fields stay unchanged. While a webhook is inactive, its events wait, and are delivered in " +
      "order once it is active again.",
    body: WebhookChange,
    answers: { 200: data("The updated webhook", WebhookRecord) },
  },

  deleteWebhook: {
    at: "DELETE /v1/webhooks/{id}",
    params,
    summary: "Delete a webhook",
    description: "Pending deliveries and the delivery log are deleted too.",
    answers: { 200: data("The deleted webhook", WebhookRecord) },
  },

  testWebhook: {
    at: "POST /v1/webhooks/{id}/test",
    params,
    summary: "Send a test event",
    description: "Sends a `webhook.test` event to this webhook only, regardless of its subscriptions.",
    answers: { 200: data("The id of the event", z.object({ eventId: z.string() })) },
  },

  rotateWebhookSecret: {
    at: "POST /v1/webhooks/{id}/rotate-secret",
    params,
    summary: "Rotate the secret",
    description: "Requests are signed with both the new and the previous secret until `previousSecretUntil`.",
    answers: { 200: data("The webhook with its new secret", WebhookWithSecret) },
  },
});

export const webhookResource = { routes: Object.values(routes), add: addWebhooks };

function addWebhooks(api: Api, { webhooks, idempotency }: Services): void {
  api.answer(routes.listWebhooks, async ({ accountId }) => (await webhooks.list(accountId)).map(recordOf));

  api.on(routes.createWebhook, async ({ caller, body, repeat }) => {
    const answerTo = ({ webhook, secret }: MadeWebhook) => created({ data: { ...recordOf(webhook), secret } });
    return await madeOnce({ idempotency, repeat, answerTo }, (commitWith) => {
      const wanted = { events: null, sessionId: null, ...given(body), most: caller.plan.webhooks, commitWith };
      return webhooks.create(caller.account.id, wanted);
    });
  });

  api.answer(routes.getWebhook, ({ accountId, params }) => webhooks.get(accountId, params.id), recordOf);

  api.answer(routes.updateWebhook, async ({ accountId, params, body }) => {
    return recordOf(await webhooks.update(accountId, params.id, given(body)));
  });

  api.answer(routes.deleteWebhook, ({ accountId, params }) => webhooks.remove(accountId, params.id), recordOf);

  api.answer(routes.testWebhook, async ({ accountId, params }) => {
    const { eventId } = await webhooks.test(accountId, params.id);
    return { eventId };
  });

  api.answer(routes.rotateWebhookSecret, async ({ accountId, params }) => {
    const { webhook, secret } = await webhooks.rotateSecret(accountId, params.id);
    return { ...recordOf(webhook), secret };
  });
}

function recordOf(webhook: ShownWebhook): z.infer<typeof WebhookRecord> {
  const { format = "paloma", events, chats = "all", headerNames = [] } = webhook;
  const { failingSince, previousSecretUntil, createdAt, updatedAt } = webhook;
  const times = isoTimes({ failingSince, previousSecretUntil, createdAt, updatedAt });
  return shownAs(WebhookRecord, webhook, {
    format,
    events: [...events],
    chats,
    headerNames: [...headerNames],
    ...times,
  });
}

function unique(names: EventName[]): EventName[] {
  return [...new Set(names)];
}
