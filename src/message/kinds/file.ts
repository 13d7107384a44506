/**
 * Kinds with a file, and status posts, which may have one. Image, video, audio and document differ only in their name
 * until they are encoded; stickers and voice notes accept one format each.
 */
import { percentDecoded } from "../../base/addresses.ts";
import { safeFilename } from "../../media/filename.ts";
import type { StoredFile } from "../../media/store.ts";
import type { FileBody, FileKind, PostedBody } from "../../whatsapp/outgoing.ts";
import { type Attachment, type Kind, type RemoteFile, text, type TextContent } from "./plain.ts";
import { Buffer } from "node:buffer";

export interface FileContent<File = StoredFile | RemoteFile> extends Attachment<File> {
  kind: FileKind;
  caption: string | null;
  /** The kind was asked for, whatever the file's name says. */
  asked?: true;
}

const file: Kind<FileContent, FileBody> = {
  preview: ({ caption, filename }) => ({ text: null, caption, filename }),
  characters: ({ caption, filename, file }) =>
    (caption ?? "").length + filename.length + ("url" in file ? file.url.length : 0),
  body({ kind, file, filename, mimetype, caption }, pathOf) {
    if (!("fileId" in file)) throw new Error("the file of a message must be fetched before it is uploaded");
    return { kind, path: pathOf(file.fileId), size: file.size, filename, mimetype, caption };
  },
  attachment: (content) => content,
  withAttachment({ kind, asked, caption, file: remote }, { file, filename: given, mimetype }) {
    const filename = ("url" in remote && remote.filename) || given;
    if (asked) return askedContent(kind, file, { filename, mimetype, caption });
    return fileContent(file, { filename, mimetype, caption });
  },
};

/** Kinds that stay the same whatever the file's name. */
const ofOneFormat: Kind<FileContent> = {
  ...file,
  withAttachment: (content, { file }) => ({ ...content, file }),
};

/** Only WebP, because phones show no other format as a sticker. */
const sticker: Kind<FileContent> = {
  ...ofOneFormat,
  refusal(head) {
    const data = Buffer.from(head);
    const isWebp = data.toString("latin1", 0, 4) === "RIFF" && data.toString("latin1", 8, 12) === "WEBP";
    return isWebp ? null : "must be a WebP image; PNG and JPEG are not converted";
  },
};

/** Only Opus in Ogg, which is what phones record and play as a voice note. */
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

/**
 * Returns a content whose kind and mimetype follow from the name's extension; if that is unknown, with the given
 * mimetype.
 */
export function fileContent<File>(
  file: File,
  { filename, mimetype, caption }: { filename: string; mimetype?: string; caption?: string | null | undefined },
): FileContent<File> {
  const known = fileKind(filename);
  const other = known.mimetype === "application/octet-stream" && mimetype ? { mimetype } : {};
  return { ...known, ...other, file, filename, caption: caption || null };
}

/** Types of files whose own type, and name, do not fit the kind that was asked for. */
const USUAL: Readonly<Record<FileKind, string>> = {
  image: "image/jpeg",
  video: "video/mp4",
  audio: "audio/mpeg",
  document: "application/octet-stream",
  sticker: "image/webp",
  voice: "audio/ogg; codecs=opus",
};

/** Returns a content of the kind that was asked for, whatever the file's name is. */
export function askedContent<File>(
  kind: FileKind,
  file: File,
  { filename, mimetype, caption }: { filename: string; mimetype: string; caption?: string | null | undefined },
): FileContent<File> {
  const named = fileKind(filename).mimetype;
  const fits = (type: string) => kind === "document" ? type !== USUAL.document : type.startsWith(`${kind}/`);
  const fitting = kind === "sticker" || kind === "voice" ? undefined : [mimetype, named].find(fits);
  return { kind, asked: true, file, filename, mimetype: fitting ?? USUAL[kind], caption: caption || null };
}

/**
 * Returns the content of a file that is still to be fetched: the filename, or else the name in its URL, decides the
 * kind.
 */
export function remoteContent(
  url: string,
  { caption, filename }: { caption?: string | null | undefined; filename?: string | null | undefined },
): FileContent<RemoteFile> {
  if (filename) return fileContent({ url, filename }, { filename, caption });
  const segment = new URL(url).pathname.split("/").at(-1) ?? "";
  return fileContent({ url }, { filename: safeFilename(percentDecoded(segment)) ?? "file", caption });
}

/** Kind and mimetype of files by extension (spec, "Sending messages"). Files with other extensions are documents. */
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
  // The format that phones play as a voice note.
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

/** Returns kind and mimetype of a file by its name, ignoring case. */
function fileKind(filename: string): { kind: FileKind; mimetype: string } {
  const extension = /\.([^.]+)$/.exec(filename)?.[1]?.toLowerCase() ?? "";
  const [kind, mimetype] = (Object.hasOwn(BY_EXTENSION, extension) && BY_EXTENSION[extension]) ||
    ["document", "application/octet-stream"];
  return { kind, mimetype };
}

export interface StatusContent {
  kind: "status";
  of: TextContent | FileContent;
  /** Digits. */
  audience: string[];
}

function kindOf({ of }: StatusContent): Kind<StatusContent["of"], PostedBody> {
  return of.kind === "text" ? text : file;
}

export const status: Kind<StatusContent> = {
  preview: (content) => kindOf(content).preview(content.of),
  characters: (content) => kindOf(content).characters(content.of) + content.audience.join("").length,
  body: (content, pathOf) => ({
    kind: "status",
    of: kindOf(content).body(content.of, pathOf),
    audience: content.audience,
  }),
  attachment: ({ of }) => of.kind === "text" ? null : of,
  refusal: (_, { of }) => of.kind === "document" ? "must be an image, a video or a sound to be posted" : null,
  withAttachment(content, fetched) {
    const of = kindOf(content).withAttachment?.(content.of, fetched) ?? content.of;
    return { ...content, of };
  },
};
