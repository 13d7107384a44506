/** What a kind of message is. Each is described in this folder. */
import type { StoredFile } from "../../media/store.ts";
import type { OutgoingBody } from "../../whatsapp/outgoing.ts";

/** A file that is fetched when its message's turn comes (`fileUrl`); a `StoredFile` takes its place then. */
export interface RemoteFile {
  url: string;
  /** Under this name, whatever the server calls it. */
  filename?: string;
}

export interface Attachment<File = StoredFile | RemoteFile> {
  file: File;
  filename: string;
  mimetype: string;
}

/** What the history shows of a content. */
export interface Preview {
  text: string | null;
  caption: string | null;
  filename: string | null;
}

/** Methods, so that the table takes a content of any kind. */
export interface Kind<Content> {
  preview(content: Content): Preview;
  /** UTF-16 units of all texts in the row, for the size of its commit. */
  characters(content: Content): number;
  /** As the connection takes it; `pathOf` says where a stored file lies. Its attachment must be stored by now. */
  body(content: Content, pathOf: (fileId: string) => string): OutgoingBody;
  /** Of a kind with a file: it is fetched, kept and uploaded before the message leaves. */
  attachment?(content: Content): Attachment | null;
  /** Why a file that begins like this can't be one, as a message for the file's field; null when it can. */
  refusal?(head: Uint8Array, content: Content): string | null;
  /** The content once its file was fetched. */
  withAttachment?(content: Content, fetched: Attachment<StoredFile>): Content;
}
