/** Files: image, video, audio and document, which differ by their name alone until they are encoded. */
import { percentDecoded, safeFilename } from "../../media/filename.ts";
import type { FileKind } from "../../whatsapp/outgoing.ts";
import { fileKind } from "./file_kind.ts";
import type { Attachment, Kind, RemoteFile, StoredFile } from "./kind.ts";

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
  { caption, filename }: { caption: string | null; filename?: string | null },
): FileContent<RemoteFile> {
  if (filename) return fileContent({ url, filename }, { filename, caption });
  const segment = new URL(url).pathname.split("/").at(-1) ?? "";
  return fileContent({ url }, { filename: safeFilename(percentDecoded(segment)) ?? "file", caption });
}
