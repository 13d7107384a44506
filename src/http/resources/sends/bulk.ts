/** Bulks: many messages in one request, of which all or none are accepted (spec, "Bulk"). */
import { z } from "@hono/zod-openapi";
import { quotaHeadersOf } from "../../../account/quota.ts";
import { remoteContent } from "../../../message/kinds/file.ts";
import { type Api, route } from "../../api/route.ts";
import { Recipient } from "../../api/schemas.ts";
import { MIB } from "../../body/body.ts";
import {
  BulkAcknowledgement,
  Caption,
  FileUrl,
  manner,
  options,
  quotaHeaders,
  sessionId,
  single,
  Text,
} from "./fields.ts";
import type { Sender } from "./sender.ts";

const MAX_BULK = 10_000;
/** 10,000 short texts take 2 MiB; 10,000 of the longest must be split into several requests. */
const MAX_BULK_BODY = 32 * MIB;

const BulkItem = z.strictObject({
  to: Recipient,
  text: Text.nullish().openapi({ example: "Hello 👋" }),
  fileUrl: FileUrl.nullish(),
  caption: Caption.nullish().openapi({ description: "Caption of the file.", example: undefined }),
  ...manner,
}).superRefine(({ text, fileUrl, caption }, context) => {
  const isText = typeof text === "string";
  if (isText === (typeof fileUrl === "string")) {
    context.addIssue({ code: "custom", path: ["text"], message: "either text or fileUrl is required, but not both" });
  } else if (isText && typeof caption === "string") {
    context.addIssue({ code: "custom", path: ["caption"], message: "accompanies a file, not a text" });
  }
}).openapi("BulkItem");

const BulkMessage = z.strictObject({ sessionId, messages: z.array(BulkItem).min(1).max(MAX_BULK), ...options }).openapi(
  "BulkMessage",
);

const sendBulk = route({
  ...single,
  path: "/v1/messages/send/bulk",
  operationId: "sendBulk",
  summary: "Send messages in bulk",
  description: "Either all messages are accepted or none. They are sent in order, with the plan's pauses between " +
    "them.",
  body: BulkMessage,
  maxBytes: MAX_BULK_BODY,
  longList: { name: "messages", most: MAX_BULK },
  answers: {
    202: { description: "All messages are stored and queued", schema: BulkAcknowledgement, headers: quotaHeaders },
  },
});

export const bulk = { routes: [sendBulk], add: addBulk };

function addBulk(api: Api, sender: Sender): void {
  api.on(sendBulk, async ({ caller, body, repeat }) => {
    const items = body.messages.map((message, i) => {
      const { to, text, fileUrl, caption } = message;
      const content = typeof text === "string" ? { kind: "text", text } as const : remoteContent(fileUrl!, { caption });
      return { to, content, manner: message, path: `messages.${i}.` };
    });
    const accepted = await sender.send(caller, body, { items, bulk: true, repeat });
    const rows = accepted.messages.map(({ id: messageId, jobId, to, status }, index) => {
      return { index, to, messageId, status, jobId };
    });
    return {
      status: 202,
      body: { bulkId: accepted.bulkId, total: rows.length, status: "queued", messages: rows },
      headers: quotaHeadersOf(accepted.remaining),
    };
  });
}
