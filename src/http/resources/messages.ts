/** Accepted messages: status, history, edits, cancellation (spec, "Message status and history"). */
import { z } from "@hono/zod-openapi";
import { proposes, scopeMissing } from "../../account/keys.ts";
import { Problem } from "../../errors.ts";
import { detailsOf, MESSAGE_KINDS, previewOf, typeOf } from "../../message/content.ts";
import type { WaitsFor as Waits } from "../../line/waiting.ts";
import { type Message, MESSAGE_STATUSES, PRIORITIES } from "../../message/message.ts";
import { mayChangeOf } from "../../message/proposals.ts";
import { type Api, ok, routesOf } from "../api/route.ts";
import {
  data,
  idOf,
  idParams,
  isoTime,
  isoTimeOrNull,
  isoTimes,
  orNull,
  pageOf,
  pageQuery,
  Pagination,
  rare,
  Recipient,
  shownAs,
  Timestamp,
  WaitsFor,
  waitsForOf,
} from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { priority, sendAt, sendTimeOf, Tag, Text } from "./sends/fields.ts";

export const MessageError = z.object({
  code: z.string().openapi({ example: "number_not_registered" }),
  message: z.string(),
})
  .openapi("MessageError");
const MessageState = z.enum(MESSAGE_STATUSES).openapi("MessageState");
const MessageType = z.enum(MESSAGE_KINDS).openapi("MessageType");

const Status = z.object({
  messageId: idOf("message", "msg"),
  status: MessageState,
  sentAt: Timestamp.nullable().describe("When WhatsApp acknowledged the message; null until then."),
  error: orNull(MessageError).describe("Why the message failed; null otherwise."),
}).openapi("MessageStatus");

const HistoryItem = z.object({
  messageId: idOf("message", "msg"),
  jobId: idOf("queue job", "job"),
  sessionId: idOf("session", "ses"),
  to: z.string(),
  type: MessageType,
  text: z.string().nullable(),
  caption: z.string().nullable(),
  filename: z.string().nullable(),
  details: z.record(z.string(), z.unknown()).nullable().describe(
    "Content of a location, contact or poll that has no other field; null for other messages.",
  ),
  status: MessageState,
  error: orNull(MessageError),
  priority: z.enum(PRIORITIES),
  tags: z.array(z.string()).describe("The tags of the send."),
  sendAt: Timestamp.nullable().describe("Earliest time the message is sent; null if it is not scheduled."),
  createdAt: Timestamp,
  sentAt: Timestamp.nullable(),
  deliveredAt: Timestamp.nullable(),
  readAt: Timestamp.nullable(),
  erasedAt: Timestamp.optional().describe(
    "Present only if the recipient's data was erased: then `to` is empty and the content is gone.",
  ),
  waitsFor: WaitsFor.optional(),
  proposedBy: z.string().optional().openapi(
    rare("Name of the key that proposed the message; absent if it needed no approval."),
  ),
}).openapi("HistoryItem");

const HistoryPagination = z.object({
  ...Pagination.shape,
  next: z.string().optional().describe(
    "Present only if the page was cut at 8 MiB because of long messages. To continue, pass it as " +
      "`before` and start again at page 1.",
  ),
}).openapi("HistoryPagination");

const LIFE = ["queued", "approved", "processing", "sent", "failed", "delivered", "read", "edited", "revoked"] as const;

const MessageRecord = z.object({
  ...HistoryItem.shape,
  life: z.array(z.object({ status: z.enum(LIFE), at: Timestamp }).openapi("LifeEntry")).describe(
    "Status changes, oldest first. `edited` has the time of the latest edit after sending.",
  ),
  poll: z.object({
    voters: z.int().describe("Number of people who have voted."),
    options: z.array(z.object({ name: z.string(), votes: z.int() }).openapi("PollOption")),
  }).nullable().describe("Results of a poll, counting each voter's latest choice; null for other messages."),
}).openapi("MessageRecord");

const ofOne = { params: idParams("message", "msg") };

const record = data("The message", MessageRecord);

const CancelledBulk = z.object({
  bulkId: idOf("bulk", "blk"),
  cancelled: z.int().describe("Number of messages cancelled."),
  messageIds: z.array(idOf("message", "msg")),
}).openapi("CancelledBulk");

const Cancelled = z.object({ cancelled: z.int().describe("Number of messages cancelled.") })
  .openapi("CancelledMessages");

const routes = routesOf("Messages", {
  getMessageStatus: {
    at: "GET /v1/messages/{id}/status",
    ...ofOne,
    summary: "Get the status of a message",
    answers: { 200: { description: "The status", schema: Status } },
  },

  listMessageHistory: {
    at: "GET /v1/messages/history",
    summary: "List messages",
    description: "Newest first. Filters are combined: a message must match all of them. An unknown session or bulk " +
      "matches nothing.",
    query: z.object({
      ...pageQuery,
      status: MessageState.optional(),
      from: z.iso.date().optional().openapi({ description: "First UTC day, inclusive.", example: "2026-01-01" }),
      to: z.iso.date().optional().openapi({ description: "Last UTC day, inclusive.", example: "2026-01-31" }),
      sessionId: idOf("session", "ses").optional().openapi(rare("Only messages sent by this session.")),
      recipient: Recipient.optional().openapi(
        rare(
          "Only messages to this recipient, as given in `to`. A number and its `@s.whatsapp.net` JID are " +
            "the same recipient.",
        ),
      ),
      type: MessageType.optional(),
      tag: Tag.optional().openapi(rare("Only messages with this tag.")),
      bulkId: idOf("bulk", "blk").optional().openapi(rare("Only messages of this bulk.")),
      before: idOf("message", "msg").optional().openapi(
        rare("Only messages accepted before this one: `next` of the previous page."),
      ),
    }),
    answers: { 200: pageOf(HistoryItem, HistoryPagination) },
    problems: ["not_found"],
  },

  listProposals: {
    at: "GET /v1/messages/proposals",
    summary: "List messages that wait for approval",
    description: "Oldest first: what keys with the scope `propose` sent, and nobody has approved or cancelled yet.",
    query: z.object(pageQuery),
    answers: { 200: pageOf(HistoryItem, HistoryPagination) },
  },

  getMessage: {
    at: "GET /v1/messages/{id}",
    ...ofOne,
    summary: "Get a message",
    answers: { 200: record },
  },

  editMessage: {
    at: "PATCH /v1/messages/{id}",
    ...ofOne,
    proposals: true,
    summary: "Edit or reschedule a message",
    description: "`text` edits the message: in place while it is queued, or on the recipients' phones within 15 " +
      "minutes of sending; the response then waits for WhatsApp's acknowledgement. `sendAt` and `priority` can be " +
      "changed only while it is queued; `ttl` counts from the new time. Does not count against the quota.",
    body: z.strictObject({ text: Text.nullish().openapi({ example: "Hello again 👋" }), sendAt, priority })
      .superRefine(({ text, sendAt, priority }, context) => {
        const moves = typeof sendAt === "string" || typeof priority === "string";
        if (moves !== (typeof text === "string")) return;
        const message = "give either text, or sendAt, priority or both";
        context.addIssue({ code: "custom", path: ["text"], message });
      }).openapi("MessageEdit", { minProperties: 1 }),
    answers: { 200: record },
    problems: ["not_editable", "network_error", "network_timeout"],
  },

  approveMessage: {
    at: "POST /v1/messages/{id}/approve",
    ...ofOne,
    summary: "Approve a proposed message",
    description: "It takes its place in the queue, that of its acceptance or of its `sendAt`. To refuse it, cancel it.",
    answers: { 200: record },
    problems: ["not_waiting_for_approval"],
  },

  revokeMessage: {
    at: "POST /v1/messages/{id}/revoke",
    ...ofOne,
    proposals: true,
    summary: "Delete a message for everyone",
    description: "A queued message is cancelled. A sent one is deleted from the recipients' phones, up to 60 hours " +
      "after sending; the response waits for WhatsApp's acknowledgement, and `status` stays `sent`. Does not count " +
      "against the quota.",
    answers: { 200: record },
    problems: ["not_revocable", "network_error", "network_timeout"],
  },

  cancelMessages: {
    at: "DELETE /v1/messages",
    proposals: true,
    summary: "Cancel all queued messages with a tag",
    description: "They end as `failed` with the error code `cancelled`, and their quota is returned. Messages " +
      "already handed to WhatsApp are not affected. If nothing is left to cancel, the call succeeds.",
    query: z.object({ tag: Tag.openapi({ description: "The tag.", example: "invoice-1042" }) }),
    answers: { 200: data("How many were cancelled", Cancelled) },
  },

  cancelMessage: {
    at: "DELETE /v1/messages/{id}",
    proposals: true,
    summary: "Cancel a queued message or bulk",
    description: "Cancelled messages end as `failed` with the error code `cancelled`. Messages already handed to " +
      "WhatsApp are not affected.",
    params: z.object({
      id: z.string().regex(/^(msg|blk)_[0-9a-z]{26}$/, "is not the id of a message or a bulk").openapi({
        description: "Id of the message or bulk.",
        example: "msg_01kf0m3e4v8s2q6w9x1y5z7abc",
      }),
    }),
    answers: { 200: data("The message, or the cancelled messages of the bulk", z.union([HistoryItem, CancelledBulk])) },
    problems: ["not_cancellable"],
  },
});

export const messageResource = { routes: Object.values(routes), add: addMessages };

function addMessages(
  api: Api,
  { history, filled, proposals, queued, amendments, tallyOf, forecast, runtime, budgets }: Services,
): void {
  /** Resolves to the message with its life and, for a poll, its votes. */
  async function recordOf(kept: Message): Promise<z.infer<typeof MessageRecord>> {
    const [message] = await filled([kept]) as [Message];
    const waitsFor = (await forecast.waits([message])).get(message.id);
    const { createdAt, dispatchedAt, sentAt, failedAt, deliveredAt, readAt, editedAt, revokedAt } = message;
    const times = {
      queued: createdAt,
      approved: message.proposal?.approvedAt,
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

  api.on(routes.getMessageStatus, async ({ accountId, params }) => {
    const { id, status, sentAt, error } = await history.get(accountId, params.id);
    return ok({ messageId: id, status, sentAt: isoTimeOrNull(sentAt), error });
  });

  api.on(routes.listMessageHistory, async ({ accountId, query }) => {
    const { page, limit } = query;
    const { messages, total, next } = await budgets.read(accountId, () => history.page(accountId, query));
    const waits = await forecast.waits(messages);
    return ok({
      data: messages.map((message) => itemOf(message, waits.get(message.id))),
      pagination: { page, limit, total, ...(next === undefined ? {} : { next }) },
    });
  });

  api.on(routes.listProposals, async ({ accountId, query }) => {
    const { messages, total } = await budgets.read(accountId, () => proposals(accountId, query));
    const waits = await forecast.waits(messages);
    const shown = (await filled(messages)).map((message) => itemOf(message, waits.get(message.id)));
    return ok({ data: shown, pagination: { ...query, total } });
  });

  api.answer(routes.approveMessage, ({ accountId, params }) => queued.approve(accountId, params.id), recordOf);
  api.answer(routes.getMessage, ({ accountId, params }) => history.get(accountId, params.id), recordOf);

  api.answer(routes.editMessage, async ({ caller, params, body }) => {
    const { id: accountId } = caller.account;
    const may = mayChangeOf(caller);
    if (typeof body.text === "string") {
      return await recordOf(await amendments.edit(accountId, params.id, body.text, may));
    }
    const sendAt = sendTimeOf(body.sendAt, runtime.clock.now()) ?? undefined;
    const priority = body.priority ?? undefined;
    return await recordOf(await queued.reschedule(accountId, params.id, { sendAt, priority }, may));
  });

  api.answer(routes.revokeMessage, async ({ caller, params }) => {
    return await recordOf(await amendments.revoke(caller.account.id, params.id, mayChangeOf(caller)));
  });

  api.answer(routes.cancelMessages, async ({ caller, accountId, query: { tag } }) => {
    const cancelTagged = async () =>
      await queued.cancelAll(accountId, await history.waitingWith(accountId, tag), mayChangeOf(caller));
    return { cancelled: await budgets.job(accountId, cancelTagged) };
  });

  api.answer(routes.cancelMessage, async ({ caller, accountId, params: { id } }) => {
    const may = mayChangeOf(caller);
    if (id.startsWith("msg_")) {
      const [cancelled] = await filled([await queued.cancel(accountId, id, may)]) as [Message];
      return itemOf(cancelled);
    }
    const cancelled = await budgets.job(accountId, () => queued.cancelBulk(accountId, id, may));
    if (cancelled.length === 0 && proposes(caller)) throw scopeMissing("send");
    if (cancelled.length === 0) throw new Problem("not_cancellable", "None of the bulk's messages is queued any more.");
    const messageIds = cancelled.map((message) => message.id);
    return { bulkId: id, cancelled: messageIds.length, messageIds };
  });
}

/** The content shown of a message whose recipient was erased. */
const NOTHING = { text: null, caption: null, filename: null, details: null };

/** Returns a message in the form of the history. */
function itemOf(message: Message, waitsFor?: Waits): z.infer<typeof HistoryItem> {
  const { id, content, manner, proposal, sendAt, createdAt, sentAt, deliveredAt, readAt, erasedAt } = message;
  return shownAs(HistoryItem, message, {
    messageId: id,
    type: typeOf(content),
    ...(erasedAt === undefined ? { ...previewOf(content), details: detailsOf(content) } : NOTHING),
    tags: [...manner?.tags ?? []],
    ...isoTimes({ sendAt, createdAt, sentAt, deliveredAt, readAt }),
    erasedAt: erasedAt === undefined ? undefined : isoTime(erasedAt),
    waitsFor: waitsFor && waitsForOf(waitsFor),
    proposedBy: proposal?.by,
  });
}
