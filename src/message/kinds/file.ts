/**
 * Files: image, video, audio and document, which differ by their name alone until they are encoded; stickers and voice
 * notes, which are of one format each.
 */
import { Buffer } from "node:buffer";
import { percentDecoded, safeFilename } from "../../media/filename.ts";
import type { StoredFile } from "../../media/store.ts";
import type { FileKind } from "../../whatsapp/outgoing.ts";
import type { Attachment, Kind, RemoteFile } from "./kind.ts";

export interface FileContent<File = StoredFile | RemoteFile> extends Attachment<File> {
  kind: FileKind;
  caption: string | null;
}

export const file: Kind<FileContent> = {
  preview: ({ caption, filename }) => ({ text: null, caption, filename }),
  characters: ({ caption, filename, file }) =>
    (caption ?? "").length + filename.length + ("url" in file ? file.url.length : 0),
  body({ kind, file, filename, mimetype, caption }, pathOf) {
    if (!("fileId" in file)) throw new Error("the file of a message must be fetched before it is uploaded");
    return { kind, path: pathOf(file.fileId), size: file.size, filename, mimetype, caption };
  },
  attachment: (content) => content,
  withAttachment({ caption, file: remote }, { file, filename: given, mimetype }) {
    const filename = ("url" in remote && remote.filename) || given;
    return fileContent(file, { filename, mimetype, caption });
  },
};

/** Those keep their kind, whatever the name of the file. */
const ofOneFormat: Kind<FileContent> = {
  ...file,
  withAttachment: (content, { file }) => ({ ...content, file }),
};

/** WebP alone, which is what phones show. */
const sticker: Kind<FileContent> = {
  ...ofOneFormat,
  refusal(head) {
    const data = Buffer.from(head);
    const isWebp = data.toString("latin1", 0, 4) === "RIFF" && data.toString("latin1", 8, 12) === "WEBP";
    return isWebp ? null : "must be a WebP image; PNG and JPEG are not converted";
  },
};

/** Opus in Ogg alone, which is what phones record and play as one. */
const voice: Kind<FileContent> = {
  ...ofOneFormat,
  refusal(head) {
    const data = Buffer.from(head);
    if (data.toString("latin1", 0, 4) !== "OggS") return "must be Opus in an Ogg file; other audio is not converted";
    // The identification header is alone on the first page (RFC 7845).
    return data.includes("OpusHead") ? null : "is an Ogg file without Opus; other audio is not converted";
  },
};

export const FILE_KINDS = { image: file, video: file, audio: file, document: file, sticker, voice };

/** Kind and mimetype by the name's extension; for an extension that is not known, the mimetype that a server gave. */
export function fileContent<File>(
  file: File,
  { filename, mimetype, caption }: { filename: string; mimetype?: string; caption?: string | null | undefined },
): FileContent<File> {
  const known = fileKind(filename);
  const other = known.mimetype === "application/octet-stream" && mimetype ? { mimetype } : {};
  return { ...known, ...other, file, filename, caption: caption || null };
}

/** What is known of a remote file before it is fetched: the name in its address decides the kind. */
export function remoteContent(
  url: string,
  { caption, filename }: { caption?: string | null | undefined; filename?: string | null | undefined },
): FileContent<RemoteFile> {
  if (filename) return fileContent({ url, filename }, { filename, caption });
  const segment = new URL(url).pathname.split("/").at(-1) ?? "";
  return fileContent({ url }, { filename: safeFilename(percentDecoded(segment)) ?? "file", caption });
}

/** In which kind a file arrives, by its extension (spec, "Sending messages"). Whatever is not in it is a document. */
const BY_EXTENSION: Readonly<Record<string, [FileKind, string]>> = {
  png: ["image", "image/png"],
  jpg: ["image", "image/jpeg"],
  jpeg: ["image", "image/jpeg"],
  gif: ["image", "image/gif"],
  webp: ["image", "image/webp"],
  mp4: ["video", "video/mp4"],
  "3gp": ["video", "video/3gpp"],
  mov: ["video", "video/quicktime"],
  mp3: ["audio", "audio/mpeg"],
  // What phones play as a voice note.
  ogg: ["audio", "audio/ogg; codecs=opus"],
  pdf: ["document", "application/pdf"],
  doc: ["document", "application/msword"],
  docx: ["document", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  xls: ["document", "application/vnd.ms-excel"],
  xlsx: ["document", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
  ppt: ["document", "application/vnd.ms-powerpoint"],
  pptx: ["document", "application/vnd.openxmlformats-officedocument.presentationml.presentation"],
  odt: ["document", "application/vnd.oasis.opendocument.text"],
  ods: ["document", "application/vnd.oasis.opendocument.spreadsheet"],
  odp: ["document", "application/vnd.oasis.opendocument.presentation"],
  rtf: ["document", "application/rtf"],
  txt: ["document", "text/plain"],
  csv: ["document", "text/csv"],
  xml: ["document", "application/xml"],
  json: ["document", "application/json"],
  html: ["document", "text/html"],
  zip: ["document", "application/zip"],
  rar: ["document", "application/vnd.rar"],
  "7z": ["document", "application/x-7z-compressed"],
};

/** Kind and mimetype of a file by its name; case does not matter. */
function fileKind(filename: string): { kind: FileKind; mimetype: string } {
  const extension = /\.([^.]+)$/.exec(filename)?.[1]?.toLowerCase() ?? "";
  const [kind, mimetype] = (Object.hasOwn(BY_EXTENSION, extension) && BY_EXTENSION[extension]) ||
    ["document", "application/octet-stream"];
  return { kind, mimetype };
}
