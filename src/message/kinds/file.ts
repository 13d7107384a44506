/**
 * Kinds with a file, and status posts, which may have one. Image, video, audio and document differ only in their name
 * until they are encoded; stickers and voice notes accept one format each.
 */
import { percentDecoded } from "../../base/addresses.ts";
import {
  essence,
  extensionIn,
  isOgg,
  isOggOpus,
  isPdf,
  isWebp,
  typeOfExtension,
  UNKNOWN_TYPE,
} from "../../base/file_types.ts";
import { keysOf } from "../../base/typed_keys.ts";
import { safeFilename, safeMimetype } from "../../media/filename.ts";
import type { StoredFile } from "../../media/store.ts";
import type { FileBody, FileKind, PostedBody } from "../../whatsapp/outgoing.ts";
import { type Attachment, type Kind, type RemoteFile, text, type TextContent } from "./plain.ts";

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

/** What was asked for as a kind has to be one, as far as its type tells. */
const ofFamily = (family: "image" | "video" | "audio"): Kind<FileContent> => ({
  ...file,
  refusal: (_, { asked, mimetype }) =>
    asked && !mimetype.startsWith(`${family}/`) ? `is ${mimetype}, which is no ${family}` : null,
});

/** What is sent as a PDF has to be one: a word in place of the file's content would arrive as a broken invoice. */
const document: Kind<FileContent> = {
  ...file,
  refusal: (head, { mimetype }) => mimetype === "application/pdf" && !isPdf(head) ? "is not a PDF" : null,
};

/** Kinds that stay the same whatever the file's name. */
const ofOneFormat: Kind<FileContent> = {
  ...file,
  withAttachment: (content, { file }) => ({ ...content, file }),
};

/** Only WebP, because phones show no other format as a sticker. */
const sticker: Kind<FileContent> = {
  ...ofOneFormat,
  refusal: (head) => isWebp(head) ? null : "must be a WebP image; PNG and JPEG are not converted",
};

/** Only Opus in Ogg, which is what phones record and play as a voice note. */
const voice: Kind<FileContent> = {
  ...ofOneFormat,
  refusal(head) {
    if (isOggOpus(head)) return null;
    const found = isOgg(head) ? "is an Ogg file without Opus" : "must be Opus in an Ogg file";
    return `${found}; other audio is not converted`;
  },
};

export const FILE_KINDS = {
  image: ofFamily("image"),
  video: ofFamily("video"),
  audio: ofFamily("audio"),
  document,
  sticker,
  voice,
};

/**
 * Returns a content whose kind and mimetype follow from the name's extension, ignoring case; if that is unknown, with
 * the given mimetype.
 */
export function fileContent<File>(
  file: File,
  { filename, mimetype, caption }: { filename: string; mimetype?: string | null; caption?: string | null | undefined },
): FileContent<File> {
  const extension = extensionIn(filename);
  const kind = KIND_OF.get(extension) ?? "document";
  const type = typeOfExtension(extension) ?? safeMimetype(essence(mimetype ?? ""));
  return { kind, mimetype: type, file, filename, caption: caption || null };
}

/** Types by the kind that was asked for, of files of which neither type nor name is known. */
const USUAL: Readonly<Record<FileKind, string>> = {
  image: "image/jpeg",
  video: "video/mp4",
  audio: "audio/mpeg",
  document: UNKNOWN_TYPE,
  sticker: "image/webp",
  voice: "audio/ogg; codecs=opus",
};

/** Returns a content of the kind that was asked for, whatever the file's name is; `refusalOf` tells if it is none. */
export function askedContent<File>(
  kind: FileKind,
  file: File,
  { filename, mimetype, caption }: { filename: string; mimetype: string; caption?: string | null | undefined },
): FileContent<File> {
  const known = [essence(mimetype), typeOfExtension(extensionIn(filename)) ?? ""]
    .filter((type) => type !== "" && type !== UNKNOWN_TYPE);
  const isOfOneFormat = kind === "sticker" || kind === "voice";
  const type = isOfOneFormat ? undefined : known.find((type) => type.startsWith(`${kind}/`)) ?? known[0];
  return { kind, asked: true, file, filename, mimetype: type ?? USUAL[kind], caption: caption || null };
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

/** The kinds of files by extension (spec, "Sending messages"). Files with other extensions are documents. */
const EXTENSIONS = { image: "png jpg jpeg gif webp", video: "mp4 3gp mov", audio: "mp3 ogg" };
const KIND_OF = new Map(
  keysOf(EXTENSIONS).flatMap((kind) => EXTENSIONS[kind].split(" ").map((extension) => [extension, kind] as const)),
);

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
