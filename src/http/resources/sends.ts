/** Sending: text, files in three ways, and many at once (spec, "Sending messages"). */
import { z } from "@hono/zod-openapi";
import type { Caller } from "../../account/account.ts";
import type { RepeatableRequest } from "../../account/idempotency.ts";
import type { QuotaLeft } from "../../account/quota.ts";
import { Problem } from "../../errors.ts";
import { safeFilename } from "../../media/filename.ts";
import { type Accepted, LineChanged, type SendCommand } from "../../message/accept.ts";
import type { OutgoingContent, StoredFile } from "../../message/content.ts";
import { remoteContent } from "../../message/fetch_file.ts";
import { fileKind } from "../../message/file_kind.ts";
import { StoreError } from "../../store/kv.ts";
import { MIB } from "../body/body.ts";
import type { ApiContext } from "../api/context.ts";
import { repeatable } from "../api/idempotency.ts";
import { readJsonUpload, type Upload } from "../body/json_upload.ts";
import { readFormUpload } from "../body/multipart.ts";
import { type Answer, type Api, route } from "../api/route.ts";
import { Caption, idOf, Recipient, Text } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

/** "About 35 MB" (spec, Limits): of the file itself, decoded. */
const MAX_DOCUMENT_BYTES = 35 * MIB;
/** 35 MiB in base64 with line breaks, and the other fields. */
const MAX_DOCUMENT_BODY = 50 * MIB;
const MAX_FORM_FILE_BYTES = 100 * MIB;
const MAX_FORM_BODY = 102 * MIB;
const MAX_TEXT_BODY = MIB;
const MAX_BULK = 10_000;
/** Ten thousand short texts are two of these; ten thousand of the longest must be cut into several requests. */
const MAX_BULK_BODY = 32 * MIB;

/** How often a line may change under a send before that is given up. */
const MOST_LOOKS = 20;

const DAY_SECONDS = 24 * 60 * 60;
const MAX_TTL_SECONDS = 7 * DAY_SECONDS;

const Session = z.string().min(1).max(100).openapi({
  description: "Sending line; if omitted, the first connected line of the account (the oldest)",
  example: "ses_01kf0m3e4v8s2q6w9x1y5z7abc",
});
const sessionId = Session.nullish();
const seconds = z.int().min(1).max(MAX_TTL_SECONDS);
const ttl = seconds.nullish().openapi({
  description: "Seconds that the message may wait before it ends as failed (`expired`); 24 hours if left out",
  // None, nor for other members that few need: whoever tries the form as it stands sends what is shown.
  example: undefined,
});
/** Something to be seen after the last slash. Without flags: a pattern in the reference has none. */
// deno-lint-ignore no-control-regex -- such a name is nothing that a phone could show
const FILE_NAME = /[^/\\.\s\x00-\x1f\x7f-\x9f][^/\\]*$/;
const filename = z.string().min(1).max(255).regex(FILE_NAME, "must be a file name").openapi({
  description: "Name with extension",
  example: "invoice-1042.pdf",
});
const base64 = z.string().openapi({
  description: "Base64; the prefix `data:<mime>;base64,` is accepted. At most 35 MiB decoded",
  format: "byte",
  minLength: 2,
  example: "JVBERi0xLjQKJSVFT0YK",
});

const PDF_NAME = "document.pdf";

const TextMessage = z.strictObject({ sessionId, to: Recipient, text: Text.openapi({ example: "Hello 👋" }), ttl })
  .openapi("TextMessage");

const DocumentMessage = z.strictObject({
  sessionId,
  to: Recipient,
  file: base64,
  filename,
  caption: Caption.nullish(),
  ttl,
})
  .openapi("DocumentMessage");

const PdfMessage = z.strictObject({
  file: base64,
  number: Recipient,
  message: Caption.nullish().openapi({ description: "Text that accompanies the document" }),
  filename: filename.nullish().openapi({ default: PDF_NAME }),
}).openapi("PdfMessage");

const FileMessage = z.strictObject({
  sessionId: Session.optional(),
  to: Recipient,
  caption: Caption.optional(),
  ttl: z.string().regex(/^\d{1,6}$/, "must be whole seconds").transform(Number).pipe(seconds).optional().openapi({
    type: "integer",
    minimum: 1,
    maximum: MAX_TTL_SECONDS,
  }),
  file: z.string().openapi({ format: "binary", minLength: 1, description: "Any file type, at most 100 MiB" }),
}).openapi("FileMessage");

const NULL = { type: "null" };
const STRING = { type: "string" };
/** What `superRefine` checks, as JSON Schema says it. */
const ITEM_RULES = {
  oneOf: [
    { required: ["to", "text"], properties: { text: STRING, fileUrl: NULL, caption: NULL } },
    { required: ["to", "fileUrl"], properties: { text: NULL, fileUrl: STRING } },
  ],
} as object;

const BulkItem = z.strictObject({
  to: Recipient,
  text: Text.nullish().openapi({ example: "Hello 👋" }),
  fileUrl: z.url({ protocol: /^https?$/, error: "must be an http or https URL" }).max(2048).nullish().openapi({
    description:
      "Address of a file to send instead of text, like https://files.example.com/1042.pdf; it is fetched when its turn comes",
    example: undefined,
  }),
  caption: Caption.nullish().openapi({ description: "Accompanies the file", example: undefined }),
}).superRefine(({ text, fileUrl, caption }, context) => {
  const isText = typeof text === "string";
  if (isText === (typeof fileUrl === "string")) {
    context.addIssue({ code: "custom", path: ["text"], message: "either text or fileUrl is required, and not both" });
  } else if (isText && typeof caption === "string") {
    context.addIssue({ code: "custom", path: ["caption"], message: "accompanies a file, not a text" });
  }
}).openapi("BulkItem", ITEM_RULES);

const BulkMessage = z.strictObject({ sessionId, messages: z.array(BulkItem).min(1).max(MAX_BULK), ttl }).openapi(
  "BulkMessage",
);

const ack = { messageId: idOf("message", "msg"), status: z.literal("queued"), jobId: idOf("queue job", "job") };
const Acknowledgement = z.object(ack).openapi("Acknowledgement");
const BulkAcknowledgement = z.object({
  bulkId: idOf("bulk", "blk"),
  total: z.int(),
  status: z.literal("queued"),
  messages: z.array(z.object({ index: z.int(), to: z.string(), ...ack })),
}).openapi("BulkAcknowledgement");

const base = { method: "post", tag: "Messages", access: "key", repeats: "handler", checksKey: true } as const;
const quotaHeaders = {
  "x-quota-daily-remaining": "Messages left this UTC day; absent where the plan sets no limit",
  "x-quota-monthly-remaining": "Messages left this UTC month; absent where the plan sets no limit",
};
const answers = { 202: { description: "Accepted: it is on disk", schema: Acknowledgement, headers: quotaHeaders } };
const problems = ["not_found", "session_not_connected", "no_connected_session", "quota_exceeded"] as const;

const sendText = route({
  ...base,
  path: "/v1/messages/send/text",
  operationId: "sendText",
  summary: "Send a text",
  body: TextMessage,
  maxBytes: MAX_TEXT_BODY,
  answers,
  problems,
});

const sendFile = route({
  ...base,
  path: "/v1/messages/send/file",
  operationId: "sendFile",
  summary: "Send a file by multipart upload",
  description: "The kind in which it arrives is chosen from its extension. At most 100 MiB.",
  upload: { contentType: "multipart/form-data", schema: FileMessage },
  maxBytes: MAX_FORM_BODY,
  answers,
  problems,
});

const sendDocument = route({
  ...base,
  path: "/v1/messages/send/document",
  operationId: "sendDocument",
  summary: "Send a file given as base64",
  description: "The kind in which it arrives is chosen from the extension of `filename`. At most 35 MiB decoded.",
  upload: { contentType: "application/json", schema: DocumentMessage },
  maxBytes: MAX_DOCUMENT_BODY,
  answers,
  problems,
});

const sendBulk = route({
  ...base,
  path: "/v1/messages/send/bulk",
  operationId: "sendBulk",
  summary: "Send many messages",
  description: "All are accepted or none. They leave in their order, with the pauses of the plan between them.",
  body: BulkMessage,
  maxBytes: MAX_BULK_BODY,
  answers: { 202: { description: "All accepted", schema: BulkAcknowledgement, headers: quotaHeaders } },
  problems,
});

const sendPdf = route({
  ...base,
  path: "/v1/message/send/pdf",
  access: "key_or_bearer",
  operationId: "sendPdf",
  summary: "Send a PDF, for invoicing systems",
  description: "Goes out on the first connected line. The key may also come as `Authorization: Bearer`.",
  upload: { contentType: "application/json", schema: PdfMessage },
  maxBytes: MAX_DOCUMENT_BODY,
  answers,
  problems: ["no_connected_session", "quota_exceeded"],
});

export const sendRoutes = [sendText, sendFile, sendDocument, sendBulk, sendPdf];

/** A send before it has a line. */
interface Outgoing {
  sessionId?: string | null | undefined;
  items: readonly { to: string; content: OutgoingContent }[];
  bulk?: boolean;
  /** Seconds; a day if left out. */
  ttl?: number | null | undefined;
  repeat: RepeatableRequest | null;
}

export function addSends(api: Api, { lines, accept, firstAnswer, media, metrics }: Services): void {
  async function send(caller: Caller, { sessionId, items, bulk = false, ttl, repeat }: Outgoing) {
    const first = repeat && await firstAnswer(repeat);
    if (first) return first;
    const command = { caller, items, bulk, ttlMs: (ttl ?? DAY_SECONDS) * 1000, idempotency: repeat };
    const accepted = await onLine(caller.account.id, sessionId ?? null, (line) => accept({ ...command, line }));
    if (!accepted.repeated) metrics.accepted.add({ kind: bulk ? "bulk" : "single" }, items.length);
    return accepted;
  }

  /** Accepts on the line that it finds, and looks again when that line has changed meanwhile. */
  async function onLine(
    accountId: string,
    sessionId: string | null,
    acceptOn: (line: SendCommand["line"]) => Promise<Accepted>,
  ): Promise<Accepted> {
    for (let look = 1;; look++) {
      const row = await lines.forSending(accountId, sessionId);
      const { id } = row.value;
      try {
        return await acceptOn({ id, row });
      } catch (error) {
        if (!(error instanceof LineChanged)) throw error;
        if (look === MOST_LOOKS) throw new StoreError("unavailable", `the line changed ${look} times meanwhile`);
        lines.changed(id);
      }
    }
  }

  /** Gives the uploaded file to a message, or removes it when no message was accepted now. */
  async function sendUploaded({ file }: Pick<Upload<unknown>, "file">, work: () => Promise<Accepted>): Promise<Answer> {
    try {
      const accepted = await work();
      if (accepted.repeated) await media.remove(file.fileId);
      return acknowledged(accepted);
    } catch (error) {
      // Only where it is sure that no commit names the file; otherwise the sweep finds out.
      if (isRefusal(error)) await media.remove(file.fileId);
      throw error;
    }
  }

  api.on(
    sendText,
    async ({ caller, body: { sessionId, to, text, ttl }, repeat }) =>
      acknowledged(await send(caller, { sessionId, items: [{ to, content: { kind: "text", text } }], ttl, repeat })),
  );

  api.on(sendFile, async ({ c, caller }) => {
    const upload = await readFormUpload(c.req.raw, {
      part: "file",
      schema: FileMessage,
      media,
      maxBytes: MAX_FORM_FILE_BYTES,
    });
    const { fields: { sessionId, to, caption, ttl }, file } = upload;
    const filename = safeFilename(upload.filename) ?? "file";
    return await sendUploaded(upload, () => {
      const content = fileContent(file, { filename, caption });
      return send(caller, { sessionId, items: [{ to, content }], ttl, repeat: repeatOf(c, { caller, upload }) });
    });
  });

  api.on(sendDocument, async ({ c, caller }) => {
    const options = { part: "file", schema: DocumentMessage, media, maxBytes: MAX_DOCUMENT_BYTES };
    const upload = await readJsonUpload(c.req.raw, options);
    const { fields: { sessionId, to, filename, caption, ttl }, file } = upload;
    return await sendUploaded(upload, () => {
      const content = fileContent(file, { filename: safeFilename(filename) ?? "file", caption });
      return send(caller, { sessionId, items: [{ to, content }], ttl, repeat: repeatOf(c, { caller, upload }) });
    });
  });

  api.on(sendPdf, async ({ c, caller }) => {
    const options = { part: "file", schema: PdfMessage, media, maxBytes: MAX_DOCUMENT_BYTES };
    const upload = await readJsonUpload(c.req.raw, options);
    const { fields: { number: to, message, filename }, file } = upload;
    return await sendUploaded(upload, () => {
      const pdf = { kind: "document", mimetype: "application/pdf" } as const;
      const content = {
        ...pdf,
        file,
        filename: safeFilename(filename ?? PDF_NAME) ?? PDF_NAME,
        caption: message || null,
      };
      return send(caller, { items: [{ to, content }], repeat: repeatOf(c, { caller, upload }) });
    });
  });

  api.on(sendBulk, async ({ caller, body: { sessionId, messages, ttl }, repeat }) => {
    const items = messages.map(({ to, text, fileUrl, caption }) => ({
      to,
      content: typeof text === "string" ? { kind: "text", text } as const : remoteContent(fileUrl!, caption ?? null),
    }));
    const accepted = await send(caller, { sessionId, items, bulk: true, ttl, repeat });
    const rows = accepted.messages.map(({ id, jobId, to, status }, index) => ({
      index,
      to,
      messageId: id,
      status,
      jobId,
    }));
    const body = { bulkId: accepted.bulkId, total: rows.length, status: "queued", messages: rows };
    return { status: 202, body, headers: quotaHeadersOf(accepted.remaining) };
  });
}

/** Whether nothing was written, surely: after `unavailable`, and after a surprise, nobody knows (`store/kv.ts`). */
function isRefusal(error: unknown): boolean {
  return error instanceof Problem || (error instanceof StoreError && error.code !== "unavailable");
}

/** The 202 of a single send. */
function acknowledged({ messages, remaining }: Accepted): Answer {
  const { id, status, jobId } = messages[0]!;
  return { status: 202, body: { messageId: id, status, jobId }, headers: quotaHeadersOf(remaining) };
}

function quotaHeadersOf({ daily, monthly }: QuotaLeft): Record<string, string> {
  return {
    ...(daily === null ? {} : { "x-quota-daily-remaining": String(daily) }),
    ...(monthly === null ? {} : { "x-quota-monthly-remaining": String(monthly) }),
  };
}

/** An upload repeats when its fields and the hash of its file do; how it was encoded does not count. */
function repeatOf(
  c: ApiContext,
  { caller, upload }: { caller: Caller; upload: Upload<object> & { filename?: string } },
) {
  const { fields, file, filename = "" } = upload;
  return repeatable(c, { accountId: caller.account.id, parts: [JSON.stringify(fields), filename, file.sha256] });
}

function fileContent(
  file: StoredFile,
  { filename, caption }: { filename: string; caption: string | null | undefined },
): OutgoingContent {
  return { ...fileKind(filename), file, filename, caption: caption || null };
}
