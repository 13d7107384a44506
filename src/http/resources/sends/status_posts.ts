/** Status posts: a text or a file for an audience. */
import { z } from "@hono/zod-openapi";
import { safeFilename } from "../../../media/filename.ts";
import { fileContent, remoteContent, type StatusContent } from "../../../message/kinds/file.ts";
import { STATUS_CHAT } from "../../../whatsapp/outgoing.ts";
import { type Api, routesOf } from "../../api/route.ts";
import { PhoneNumber, rare } from "../../api/schemas.ts";
import type { Services } from "../../api/services.ts";
import { readJsonUpload } from "../../body/json_upload.ts";
import { Caption, FileUrl, manner, options, sessionId, single, Text } from "./fields.ts";
import type { Sender } from "./sender.ts";
import { base64, filename, MAX_DOCUMENT_BODY, MAX_DOCUMENT_BYTES } from "./uploads.ts";

/** Limited because one stanza carries the post's key for every number. */
const MAX_AUDIENCE = 1_000;

const StatusMessage = z.strictObject({
  sessionId,
  text: Text.nullish().openapi({ example: "We are open today" }),
  file: base64.nullish().openapi({ example: undefined }),
  fileUrl: FileUrl.nullish(),
  filename: filename.nullish().openapi(rare("Required with `file`. The extension decides the type.")),
  caption: Caption.nullish().openapi(rare("Caption of an image or video.")),
  audience: z.array(PhoneNumber).min(1).max(MAX_AUDIENCE).describe(
    "Numbers that can see the status. Numbers that are not on WhatsApp are skipped.",
  ),
  ...manner,
  ...options,
}).superRefine((body, context) => {
  const refuse = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
  const given = [body.text, body.file, body.fileUrl].filter((value) => typeof value === "string").length;
  if (given !== 1) refuse("text", "one of text, file and fileUrl is required, and no two");
  else if (typeof body.text === "string") {
    if (typeof body.caption === "string") refuse("caption", "accompanies a file, not a text");
    if (typeof body.filename === "string") refuse("filename", "is the name of a file, not of a text");
  } else if (typeof body.file === "string" && typeof body.filename !== "string") refuse("filename", "is required");
}).openapi("StatusMessage");

const routes = routesOf("Messages", {
  sendStatus: {
    at: "POST /v1/messages/send/status",
    ...single,
    summary: "Post a status",
    description: "A text, image, video or audio file that the audience can see for 24 hours. In the history, its " +
      "recipient is `status@broadcast`.",
    upload: { contentType: "application/json", schema: StatusMessage },
    maxBytes: MAX_DOCUMENT_BODY,
  },
});

export const statusPosts = { routes: Object.values(routes), add: addStatusPosts };

function addStatusPosts(api: Api, sender: Sender, { media }: Services): void {
  api.on(routes.sendStatus, async ({ c, caller }) => {
    const upload = await readJsonUpload(c.req.raw, {
      part: "file",
      schema: StatusMessage,
      media,
      accountId: caller.account.id,
      maxBytes: MAX_DOCUMENT_BYTES,
    });
    const { file, fields: { audience, text, fileUrl, filename: name, caption } } = upload;
    const filename = name && (safeFilename(name) ?? "file");
    const of = typeof text === "string"
      ? { kind: "text", text } as const
      : file
      ? fileContent(file, { filename: filename!, caption })
      : remoteContent(fileUrl!, { caption, filename });
    const content: StatusContent = { kind: "status", of, audience };
    return await sender.sendUpload({ c, caller }, upload, { to: STATUS_CHAT, content });
  });
}
