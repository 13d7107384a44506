/** What can be sent (spec, "Sending messages"). */
import type { FileKind } from "../whatsapp/connection.ts";

/** A file that lies in the media store until the message ends. */
export interface StoredFile {
  /** Media store id. */
  fileId: string;
  size: number;
  /** Hex. */
  sha256: string;
}

/** A file that is fetched when its message's turn comes (`fileUrl`); a `StoredFile` takes its place then. */
export interface RemoteFile {
  url: string;
}

export interface FileContent<File = StoredFile | RemoteFile> {
  kind: FileKind;
  file: File;
  filename: string;
  mimetype: string;
  caption: string | null;
}

export type OutgoingContent = { kind: "text"; text: string } | FileContent;

/** The file of the content that lies in the media store; null when there is none, or not yet. */
export function storedFile(content: OutgoingContent): StoredFile | null {
  return content.kind !== "text" && "fileId" in content.file ? content.file : null;
}

/** The content's file that has yet to be fetched; null when there is none. */
export function remoteFile(content: OutgoingContent): RemoteFile | null {
  return content.kind !== "text" && "url" in content.file ? content.file : null;
}
