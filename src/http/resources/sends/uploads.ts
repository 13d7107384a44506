/** Sends with a file in the request: as a form, in base64, and as the PDF of an invoicing system. */
import { z } from "@hono/zod-openapi";
import type { Caller } from "../../../account/account.ts";
import { extensionIn } from "../../../base/file_types.ts";
import { safeFilename } from "../../../media/filename.ts";
import { type FileContent, fileContent, remoteContent } from "../../../message/kinds/file.ts";
import { type Api, routesOf } from "../../api/route.ts";
import { Addressee } from "../../api/schemas.ts";
import type { Services } from "../../api/services.ts";
import { MIB } from "../../body/body.ts";
import { readJsonUpload } from "../../body/json_upload.ts";
import { readFormUpload } from "../../body/multipart.ts";
import { Caption, FileUrl, inForm, manner, options, sessionId, single } from "./fields.ts";
import type { Sender } from "./sender.ts";

/** "About 35 MB" (spec, Limits), for the decoded file. */
export const MAX_DOCUMENT_BYTES = 35 * MIB;
/** 35 MiB in base64 with line breaks, and the other fields. */
export const MAX_DOCUMENT_BODY = 50 * MIB;
const MAX_FORM_FILE_BYTES = 100 * MIB;
const MAX_FORM_BODY = 102 * MIB;

/** A visible character after the last slash. Without flags, because a pattern in the reference cannot have any. */
// deno-lint-ignore no-control-regex -- phones cannot show such names
const FILE_NAME = /^([^/\\]*[/\\])*[.\s\x00-\x1f\x7f-\x9f]*[^/\\.\s\x00-\x1f\x7f-\x9f][^/\\]*$/;
export const filename = z.string().min(1, { abort: true }).max(255, { abort: true }).regex(
  FILE_NAME,
  "must be a file name",
).openapi({
  description: "File name with extension.",
  example: "invoice-1042.pdf",
});
export const base64 = z.string().openapi({
  description: "The file in base64, optionally with the prefix `data:<mime>;base64,`. At most 35 MiB decoded.",
  format: "byte",
  minLength: 2,
  example: "JVBERi0xLjQKJSVFT0YK",
});

const PDF_NAME = "document.pdf";

/** Reports an issue unless the body has exactly one of `file` and `fileUrl`. */
function eitherFile({ file, fileUrl }: WithFile, context: z.core.$RefinementCtx<unknown>): void {
  if ((typeof file === "string") !== (typeof fileUrl === "string")) return;
  context.addIssue({ code: "custom", path: ["file"], message: "either file or fileUrl is required, but not both" });
}

interface WithFile {
  file?: string | null | undefined;
  fileUrl?: string | null | undefined;
}

const inJson = { sessionId, to: Addressee, file: base64.nullish(), fileUrl: FileUrl.nullish(), ...options, ...manner };

const DocumentMessage = z.strictObject({
  ...inJson,
  filename: filename.nullish().describe(
    "File name with extension. Required with `file`; with `fileUrl`, replaces the name given by the " +
      "server.",
  ),
  caption: Caption.nullish(),
}).superRefine(eitherFile).superRefine(({ file, filename }, context) => {
  if (typeof file !== "string" || typeof filename === "string") return;
  context.addIssue({ code: "custom", path: ["filename"], message: "is required" });
}).openapi("DocumentMessage");

const StickerMessage = z.strictObject(inJson).superRefine(eitherFile).openapi("StickerMessage");
const VoiceMessage = z.strictObject(inJson).superRefine(eitherFile).openapi("VoiceMessage");

const PdfMessage = z.strictObject({
  file: base64,
  number: Addressee,
  message: Caption.nullish().describe("Text that accompanies the document."),
  filename: filename.nullish().openapi({
    description: `File name, to which \`.pdf\` is added if it does not end so. Defaults to \`${PDF_NAME}\`.`,
  }),
  ...manner,
  ...options,
}).openapi("PdfMessage");

const FileMessage = z.strictObject({
  sessionId: sessionId.unwrap().unwrap().optional(),
  to: Addressee,
  caption: Caption.optional(),
  ...inForm,
  file: z.string().openapi({ format: "binary", description: "A file of any type, at most 100 MiB." }),
}).openapi("FileMessage");

const routes = routesOf("Messages", {
  sendFile: {
    at: "POST /v1/messages/send/file",
    ...single,
    summary: "Send a file as multipart upload",
    description: "The extension decides whether it is sent as an image, video, audio or document. At most 100 MiB.",
    upload: { contentType: "multipart/form-data", schema: FileMessage },
    maxBytes: MAX_FORM_BODY,
  },

  sendDocument: {
    at: "POST /v1/messages/send/document",
    ...single,
    summary: "Send a file in base64 or by URL",
    description: "The extension of `filename` decides whether it is sent as an image, video, audio or document. At " +
      "most 35 MiB decoded.",
    upload: { contentType: "application/json", schema: DocumentMessage },
    maxBytes: MAX_DOCUMENT_BODY,
  },

  sendSticker: {
    at: "POST /v1/messages/send/sticker",
    ...single,
    summary: "Send a sticker",
    description: "A static or animated WebP image, in base64 or by URL. Other formats are refused, not converted.",
    upload: { contentType: "application/json", schema: StickerMessage },
    maxBytes: MAX_DOCUMENT_BODY,
  },

  sendVoice: {
    at: "POST /v1/messages/send/voice",
    ...single,
    summary: "Send a voice note",
    description: "Opus audio in an Ogg file, in base64 or by URL. It is sent with its duration and waveform. Other " +
      "formats are refused, not converted.",
    upload: { contentType: "application/json", schema: VoiceMessage },
    maxBytes: MAX_DOCUMENT_BODY,
  },

  sendPdf: {
    at: "POST /v1/message/send/pdf",
    ...single,
    access: "key_or_bearer",
    summary: "Send a PDF",
    description: "For invoicing systems. Sent by the account's first connected session. A file that is no PDF is " +
      "refused. The key may also be sent as `Authorization: Bearer`.",
    upload: { contentType: "application/json", schema: PdfMessage },
    maxBytes: MAX_DOCUMENT_BODY,
  },
});

const FILES_OF_KIND = [
  {
    route: routes.sendSticker,
    schema: StickerMessage,
    kind: "sticker",
    filename: "sticker.webp",
    mimetype: "image/webp",
  },
  {
    route: routes.sendVoice,
    schema: VoiceMessage,
    kind: "voice",
    filename: "voice.ogg",
    mimetype: "audio/ogg; codecs=opus",
  },
] as const;

export const uploads = { routes: Object.values(routes), add: addUploads };

function addUploads(api: Api, sender: Sender, { media }: Services): void {
  const form = ({ account }: Caller) => ({ part: "file", media, accountId: account.id, maxBytes: MAX_FORM_FILE_BYTES });
  const document = (caller: Caller) => ({ ...form(caller), maxBytes: MAX_DOCUMENT_BYTES });

  api.on(routes.sendFile, async ({ c, caller }) => {
    const upload = await readFormUpload(c.req.raw, { ...form(caller), schema: FileMessage });
    const { fields: { to, caption }, file, mimetype } = upload;
    const content = fileContent(file, { filename: safeFilename(upload.filename) ?? "file", mimetype, caption });
    return await sender.sendUpload({ c, caller }, upload, { to, content });
  });

  api.on(routes.sendDocument, async ({ c, caller }) => {
    const upload = await readJsonUpload(c.req.raw, { ...document(caller), schema: DocumentMessage });
    const { fields: { to, caption, fileUrl, filename: name }, file, mimetype } = upload;
    const filename = name && (safeFilename(name) ?? "file");
    const content = file
      ? fileContent(file, { filename: filename!, mimetype, caption })
      : remoteContent(fileUrl!, { caption, filename });
    return await sender.sendUpload({ c, caller }, upload, { to, content });
  });

  for (const { route, schema, ...own } of FILES_OF_KIND) {
    api.on(route, async ({ c, caller }) => {
      const upload = await readJsonUpload(c.req.raw, { ...document(caller), schema });
      const { fields: { to, fileUrl }, file } = upload;
      const content: FileContent = { ...own, file: file ?? { url: fileUrl! }, caption: null };
      return await sender.sendUpload({ c, caller }, upload, { to, content });
    });
  }

  api.on(routes.sendPdf, async ({ c, caller }) => {
    const upload = await readJsonUpload(c.req.raw, { ...document(caller), schema: PdfMessage });
    const { fields: { number: to, message, filename: name }, file } = upload;
    const given = safeFilename(name ?? PDF_NAME) ?? PDF_NAME;
    const filename = extensionIn(given) === "pdf" ? given : safeFilename(`${given}.pdf`)!;
    const pdf = { kind: "document", mimetype: "application/pdf" } as const;
    const content = { ...pdf, file: file!, filename, caption: message || null };
    return await sender.sendUpload({ c, caller }, upload, { to, content });
  });
}
