/** Bulks: many messages in one request, of which all or none are accepted (spec, "Bulk"). */
import { z } from "@hono/zod-openapi";
import { quotaHeadersOf } from "../../../account/quota.ts";
import { makeYieldPoint } from "../../../base/batches.ts";
import { remoteContent } from "../../../message/kinds/file.ts";
import { type Api, routesOf } from "../../api/route.ts";
import { Addressee, rare } from "../../api/schemas.ts";
import type { Services } from "../../api/services.ts";
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
import type { Item } from "./options.ts";
import type { Sender } from "./sender.ts";
import { makeContentOf, templated } from "./template.ts";

export const MAX_BULK = 10_000;
/** 10,000 short texts take 2 MiB; 10,000 of the longest must be split into several requests. */
const MAX_BULK_BODY = 32 * MIB;

const BulkItem = z.strictObject({
  to: Addressee,
  text: Text.nullish().openapi({ example: "Hello 👋" }),
  fileUrl: FileUrl.nullish(),
  caption: Caption.nullish().openapi(rare("Caption of the file.")),
  template: templated.template.nullish().openapi(rare("Name of a template.")),
  language: templated.language,
  variables: templated.variables.openapi({ example: undefined }),
  ...manner,
}).superRefine(({ text, fileUrl, template, caption, language, variables }, context) => {
  const refuse = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
  const given = [text, fileUrl, template].filter((value) => typeof value === "string").length;
  if (given !== 1) return refuse("text", "one of text, fileUrl and template is required, and no two");
  if (typeof caption === "string" && typeof fileUrl !== "string") refuse("caption", "accompanies a file");
  if (typeof template === "string") return;
  if (typeof language === "string") refuse("language", "accompanies a template");
  if (variables) refuse("variables", "accompany a template");
}).openapi("BulkItem");

type BulkItem = z.infer<typeof BulkItem>;

const BulkMessage = z.strictObject({ sessionId, messages: z.array(BulkItem).min(1).max(MAX_BULK), ...options }).openapi(
  "BulkMessage",
);

const routes = routesOf("Messages", {
  sendBulk: {
    at: "POST /v1/messages/send/bulk",
    ...single,
    summary: "Send messages in bulk",
    description: "Either all messages are accepted or none. They are sent in order, with the plan's pauses between " +
      "them. Usernames, of which a request may name 250, are looked up first.",
    body: BulkMessage,
    maxBytes: MAX_BULK_BODY,
    longList: { name: "messages", most: MAX_BULK },
    answers: {
      202: { description: "All messages are stored and queued", schema: BulkAcknowledgement, headers: quotaHeaders },
    },
  },
});

export const bulk = { routes: Object.values(routes), add: addBulk };

function addBulk(api: Api, sender: Sender, { templates, runtime }: Services): void {
  api.on(routes.sendBulk, async ({ caller, body, repeat }) => {
    const accepted = await sender.once(repeat, async () => {
      const fromTemplate = makeContentOf(templates, caller.account.id);
      const contentOf = async ({ to, text, fileUrl, caption, template, ...of }: BulkItem, path: string) => {
        if (typeof text === "string") return { kind: "text", text } as const;
        if (typeof template !== "string") return remoteContent(fileUrl!, { caption });
        return await fromTemplate({ ...of, template }, { to, path });
      };
      const items: Item[] = [];
      const yieldPoint = makeYieldPoint(runtime.clock);
      for (const [i, message] of body.messages.entries()) {
        const path = `messages.${i}.`;
        items.push({ to: message.to, content: await contentOf(message, path), manner: message, path });
        const due = yieldPoint();
        if (due) await due;
      }
      return await sender.sendNew(caller, body, { items, bulk: true, repeat });
    });
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
