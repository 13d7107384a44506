/** Accepted messages: status, history, edits, cancellation (spec, "Message status and history"). */
import { z } from "@hono/zod-openapi";
import { Problem } from "../../errors.ts";
import { MESSAGE_KINDS, previewOf, typeOf } from "../../message/content.ts";
import type { WaitsFor as Waits } from "../../line/waiting.ts";
import { type Message, MESSAGE_STATUSES, PRIORITIES } from "../../message/message.ts";
import { type Api, ok, route } from "../api/route.ts";
import {
  data,
  idOf,
  idParams,
  isoTime,
  isoTimeOrNull,
  pageQuery,
  Pagination,
  Recipient,
  Timestamp,
  WaitsFor,
  waitsForOf,
} from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { priority, sendAt, sendTimeOf, Text } from "./sends/fields.ts";

const MessageError = z.object({ code: z.string().openapi({ example: "number_not_registered" }), message: z.string() });

const Status = z.object({
  messageId: idOf("message", "msg"),
  status: z.enum(MESSAGE_STATUSES),
  sentAt: Timestamp.nullable().openapi({ description: "When the network acknowledged it; null until then" }),
  error: MessageError.nullable().openapi({ description: "Why it failed" }),
}).openapi("MessageStatus");

const HistoryItem = z.object({
  messageId: idOf("message", "msg"),
  jobId: idOf("queue job", "job"),
  sessionId: idOf("session", "ses"),
  to: z.string(),
  type: z.enum(MESSAGE_KINDS),
  text: z.string().nullable(),
  caption: z.string().nullable(),
  filename: z.string().nullable(),
  status: z.enum(MESSAGE_STATUSES),
  error: MessageError.nullable(),
  priority: z.enum(PRIORITIES),
  sendAt: Timestamp.nullable().openapi({
    description: "Before this time it does not leave; null: as soon as its turn comes",
  }),
  createdAt: Timestamp,
  sentAt: Timestamp.nullable(),
  deliveredAt: Timestamp.nullable(),
  readAt: Timestamp.nullable(),
  erasedAt: Timestamp.optional().openapi({
    description: "Only where the recipient was erased: `to` is empty then, and nothing of the content is left",
  }),
  waitsFor: WaitsFor.optional(),
}).openapi("HistoryItem");

const HistoryPagination = z.object({
  ...Pagination.shape,
  next: z.string().optional().openapi({
    description:
      "Only where long messages ended the page before its limit, after 8 MiB: go on with it as `before`, and " +
      "with pages from 1 again",
  }),
}).openapi("HistoryPagination");

const LIFE = ["queued", "processing", "sent", "failed", "delivered", "read", "edited", "revoked"] as const;

const MessageRecord = z.object({
  ...HistoryItem.shape,
  life: z.array(z.object({ status: z.enum(LIFE), at: Timestamp })).openapi({
    description: "What became of it, oldest first; `edited` is the last change after it was sent",
  }),
  poll: z.object({
    voters: z.int().openapi({ description: "How many people have chosen anything" }),
    options: z.array(z.object({ name: z.string(), votes: z.int() })),
  }).nullable().openapi({
    description: "What was chosen in a poll, each person's last choice; null for other messages",
  }),
}).openapi("MessageRecord");

const base = { tag: "Messages", access: "key" } as const;
const ofOne = { ...base, params: idParams("message", "msg"), problems: ["not_found"] } as const;

const getStatus = route({
  ...ofOne,
  method: "get",
  path: "/v1/messages/{id}/status",
  operationId: "getMessageStatus",
  summary: "Read the status of a message",
  answers: { 200: { description: "The status", schema: Status } },
});

const listHistory = route({
  ...base,
  method: "get",
  path: "/v1/messages/history",
  operationId: "listMessageHistory",
  summary: "Read the history",
  description:
    "Newest first. A message is on a page when everything that is asked for fits it; an unknown session or " +
    "bulk has none.",
  query: z.object({
    ...pageQuery,
    status: z.enum(MESSAGE_STATUSES).optional(),
    from: z.iso.date().optional().openapi({ description: "First UTC day, included", example: "2026-01-01" }),
    to: z.iso.date().optional().openapi({ description: "Last UTC day, included", example: "2026-01-31" }),
    sessionId: idOf("session", "ses").optional().openapi({ description: "Sent by this session", example: undefined }),
    recipient: Recipient.optional().openapi({
      description: "Sent to this number, group or JID, as `to` of the send says it. A number and its " +
        "`@s.whatsapp.net` JID are the same",
      example: undefined,
    }),
    type: z.enum(MESSAGE_KINDS).optional(),
    bulkId: idOf("bulk", "blk").optional().openapi({ description: "Accepted in this bulk", example: undefined }),
    before: idOf("message", "msg").optional().openapi({
      description: "Accepted before this message: the `next` of the page before",
      example: undefined,
    }),
  }),
  answers: {
    200: {
      description: "A page",
      schema: z.object({ data: z.array(HistoryItem), pagination: HistoryPagination }),
    },
  },
  problems: ["not_found"],
});

const record = data("The message", MessageRecord);

const getMessage = route({
  ...ofOne,
  method: "get",
  path: "/v1/messages/{id}",
  operationId: "getMessage",
  summary: "Read a message and its life",
  answers: { 200: record },
});

const editMessage = route({
  ...ofOne,
  method: "patch",
  path: "/v1/messages/{id}",
  operationId: "editMessage",
  summary: "Change a message, or move it in the queue",
  description: "With `sendAt` or `priority`: only while it is queued; `ttl` counts from the new time. With `text`: " +
    "One that waits is changed where it stands. One that was sent is changed on the recipients' phones, for " +
    "15 minutes: the answer comes when the network has acknowledged that. Counts on no quota.",
  body: z.strictObject({ text: Text.nullish().openapi({ example: "Hello again 👋" }), sendAt, priority })
    .superRefine(({ text, sendAt, priority }, context) => {
      const moves = typeof sendAt === "string" || typeof priority === "string";
      if (moves !== (typeof text === "string")) return;
      const message = "give either text alone, or sendAt, priority or both of these";
      context.addIssue({ code: "custom", path: ["text"], message });
    }).openapi("MessageEdit", { minProperties: 1 }),
  answers: { 200: record },
  problems: ["not_found", "not_editable", "network_error", "network_timeout"],
});

const revokeMessage = route({
  ...ofOne,
  method: "post",
  path: "/v1/messages/{id}/revoke",
  operationId: "revokeMessage",
  summary: "Delete a message for everyone",
  description:
    "One that waits is cancelled. One that was sent is deleted from the recipients' phones, for 60 hours: the " +
    "answer comes when the network has acknowledged that. `status` stays `sent`. Counts on no quota.",
  answers: { 200: record },
  problems: ["not_found", "not_revocable", "network_error", "network_timeout"],
});

const CancelledBulk = z.object({
  bulkId: idOf("bulk", "blk"),
  cancelled: z.int().openapi({ description: "How many messages were cancelled" }),
  messageIds: z.array(idOf("message", "msg")),
}).openapi("CancelledBulk");

const cancelMessage = route({
  ...base,
  method: "delete",
  path: "/v1/messages/{id}",
  operationId: "cancelMessage",
  summary: "Cancel a queued message, or what is left of a bulk",
  description: "The status of each becomes `failed` with error code `cancelled`. What was handed to the network stays.",
  params: z.object({
    id: z.string().regex(/^(msg|blk)_[0-9a-z]{26}$/, "is not the id of a message or a bulk").openapi({
      description: "Id of the message, or of the bulk",
      example: "msg_01kf0m3e4v8s2q6w9x1y5z7abc",
    }),
  }),
  answers: { 200: data("The message, or what was cancelled of the bulk", z.union([HistoryItem, CancelledBulk])) },
  problems: ["not_found", "not_cancellable"],
});

export const messageResource = {
  routes: [getStatus, listHistory, getMessage, editMessage, revokeMessage, cancelMessage],
  add: addMessages,
};

type Needed = Pick<
  Services,
  "history" | "queued" | "amendments" | "tallyOf" | "forecast" | "runtime" | "budgets"
>;

function addMessages(
  api: Api,
  { history, queued, amendments, tallyOf, forecast, runtime, budgets }: Needed,
): void {
  /** Resolves to the message with its life and, for a poll, its votes. */
  async function recordOf(message: Message): Promise<z.infer<typeof MessageRecord>> {
    const waitsFor = (await forecast.waits([message])).get(message.id);
    const { createdAt, dispatchedAt, sentAt, failedAt, deliveredAt, readAt, editedAt, revokedAt } = message;
    const times = {
      queued: createdAt,
      processing: dispatchedAt,
      sent: sentAt,
      failed: failedAt,
      delivered: deliveredAt,
      read: readAt,
      edited: editedAt,
      revoked: revokedAt,
    };
    const life = LIFE.flatMap((status) => times[status] == null ? [] : [{ status, at: times[status] }])
      .sort((a, b) => a.at - b.at).map(({ status, at }) => ({ status, at: isoTime(at) }));
    return { ...itemOf(message, waitsFor), life, poll: await tallyOf(message) };
  }

  api.on(getStatus, async ({ caller, params }) => {
    const { id, status, sentAt, error } = await history.get(caller.account.id, params.id);
    return ok({ messageId: id, status, sentAt: isoTimeOrNull(sentAt), error });
  });

  api.on(listHistory, async ({ caller, query }) => {
    const { page, limit } = query;
    const party = caller.account.id;
    const { messages, total, next } = await budgets.reads.run({ party }, () => history.page(party, query));
    const waits = await forecast.waits(messages);
    return ok({
      data: messages.map((message) => itemOf(message, waits.get(message.id))),
      pagination: { page, limit, total, ...(next === undefined ? {} : { next }) },
    });
  });

  api.on(getMessage, async ({ caller, params }) => {
    return ok({ data: await recordOf(await history.get(caller.account.id, params.id)) });
  });

  api.on(editMessage, async ({ caller, params, body }) => {
    const { id: accountId } = caller.account;
    if (typeof body.text === "string") {
      return ok({ data: await recordOf(await amendments.edit(accountId, params.id, body.text)) });
    }
    const sendAt = sendTimeOf(body.sendAt, runtime.clock.now()) ?? undefined;
    const priority = body.priority ?? undefined;
    return ok({ data: await recordOf(await queued.reschedule(accountId, params.id, { sendAt, priority })) });
  });

  api.on(revokeMessage, async ({ caller, params }) => {
    return ok({ data: await recordOf(await amendments.revoke(caller.account.id, params.id)) });
  });

  api.on(cancelMessage, async ({ caller, params: { id } }) => {
    if (id.startsWith("msg_")) return ok({ data: itemOf(await queued.cancel(caller.account.id, id)) });
    const party = caller.account.id;
    const cancelled = await budgets.jobs.run({ party }, () => queued.cancelBulk(party, id));
    if (cancelled.length === 0) throw new Problem("not_cancellable", "Nothing of it waits any more.");
    const messageIds = cancelled.map((message) => message.id);
    return ok({ data: { bulkId: id, cancelled: messageIds.length, messageIds } });
  });
}

/** The content shown of a message whose recipient was erased. */
const NOTHING = { text: null, caption: null, filename: null };

/** Returns a message in the form of the history. */
function itemOf(message: Message, waitsFor?: Waits): z.infer<typeof HistoryItem> {
  const { id, jobId, sessionId, to, content, status, error, erasedAt } = message;
  return {
    messageId: id,
    jobId,
    sessionId,
    to,
    type: typeOf(content),
    ...(erasedAt === undefined ? previewOf(content) : NOTHING),
    status,
    error,
    priority: message.priority,
    sendAt: isoTimeOrNull(message.sendAt),
    createdAt: isoTime(message.createdAt),
    sentAt: isoTimeOrNull(message.sentAt),
    deliveredAt: isoTimeOrNull(message.deliveredAt),
    readAt: isoTimeOrNull(message.readAt),
    ...(erasedAt === undefined ? {} : { erasedAt: isoTime(erasedAt) }),
    ...(waitsFor ? { waitsFor: waitsForOf(waitsFor) } : {}),
  };
}
