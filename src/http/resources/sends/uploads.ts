/** Sends whose file comes with the request: as a form, in base64, and as the PDF of an invoicing system. */
import { z } from "@hono/zod-openapi";
import { safeFilename } from "../../../media/filename.ts";
import { fileContent } from "../../../message/kinds/file.ts";
import { Caption } from "../../../message/kinds/text.ts";
import { type Api, route } from "../../api/route.ts";
import { Recipient } from "../../api/schemas.ts";
import type { Services } from "../../api/services.ts";
import { MIB } from "../../body/body.ts";
import { readJsonUpload } from "../../body/json_upload.ts";
import { readFormUpload } from "../../body/multipart.ts";
import { MAX_TTL_SECONDS, seconds, Session, sessionId, single, ttl } from "./fields.ts";
import type { Sender } from "./sender.ts";

/** "About 35 MB" (spec, Limits): of the file itself, decoded. */
const MAX_DOCUMENT_BYTES = 35 * MIB;
/** 35 MiB in base64 with line breaks, and the other fields. */
const MAX_DOCUMENT_BODY = 50 * MIB;
const MAX_FORM_FILE_BYTES = 100 * MIB;
const MAX_FORM_BODY = 102 * MIB;

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

const DocumentMessage = z.strictObject({
  sessionId,
  to: Recipient,
  file: base64,
  filename,
  caption: Caption.nullish(),
  ttl,
}).openapi("DocumentMessage");

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

const sendFile = route({
  ...single,
  path: "/v1/messages/send/file",
  operationId: "sendFile",
  summary: "Send a file by multipart upload",
  description: "The kind in which it arrives is chosen from its extension. At most 100 MiB.",
  upload: { contentType: "multipart/form-data", schema: FileMessage },
  maxBytes: MAX_FORM_BODY,
});

const sendDocument = route({
  ...single,
  path: "/v1/messages/send/document",
  operationId: "sendDocument",
  summary: "Send a file given as base64",
  description: "The kind in which it arrives is chosen from the extension of `filename`. At most 35 MiB decoded.",
  upload: { contentType: "application/json", schema: DocumentMessage },
  maxBytes: MAX_DOCUMENT_BODY,
});

const sendPdf = route({
  ...single,
  path: "/v1/message/send/pdf",
  access: "key_or_bearer",
  operationId: "sendPdf",
  summary: "Send a PDF, for invoicing systems",
  description: "Goes out on the first connected line. The key may also come as `Authorization: Bearer`.",
  upload: { contentType: "application/json", schema: PdfMessage },
  maxBytes: MAX_DOCUMENT_BODY,
  problems: ["no_connected_session", "quota_exceeded"],
});

export const uploadRoutes = [sendFile, sendDocument, sendPdf];

export function addUploads(api: Api, sender: Sender, { media }: Pick<Services, "media">): void {
  const document = { part: "file", media, maxBytes: MAX_DOCUMENT_BYTES };

  api.on(sendFile, async ({ c, caller }) => {
    const form = { part: "file", schema: FileMessage, media, maxBytes: MAX_FORM_FILE_BYTES };
    const upload = await readFormUpload(c.req.raw, form);
    const { fields: { sessionId, to, caption, ttl }, file } = upload;
    const filename = safeFilename(upload.filename) ?? "file";
    const content = fileContent(file, { filename, caption });
    return await sender.sendUpload({ c, caller }, upload, { sessionId, to, content, ttl });
  });

  api.on(sendDocument, async ({ c, caller }) => {
    const upload = await readJsonUpload(c.req.raw, { ...document, schema: DocumentMessage });
    const { fields: { sessionId, to, caption, ttl }, file } = upload;
    const filename = safeFilename(upload.fields.filename) ?? "file";
    const content = fileContent(file, { filename, caption });
    return await sender.sendUpload({ c, caller }, upload, { sessionId, to, content, ttl });
  });

  api.on(sendPdf, async ({ c, caller }) => {
    const upload = await readJsonUpload(c.req.raw, { ...document, schema: PdfMessage });
    const { fields: { number: to, message }, file } = upload;
    const filename = safeFilename(upload.fields.filename ?? PDF_NAME) ?? PDF_NAME;
    const pdf = { kind: "document", mimetype: "application/pdf" } as const;
    const content = { ...pdf, file, filename, caption: message || null };
    return await sender.sendUpload({ c, caller }, upload, { to, content });
  });
}
