/** The interface of a kind of message. The files of this folder implement the kinds. */
import type { StoredFile } from "../../media/store.ts";
import type { OutgoingBody } from "../../whatsapp/outgoing.ts";

/** A file that is fetched when its message's turn comes (`fileUrl`), and then replaced by a `StoredFile`. */
export interface RemoteFile {
  url: string;
  /** Overrides the name that the server gives. */
  filename?: string;
}

export interface Attachment<File = StoredFile | RemoteFile> {
  file: File;
  filename: string;
  mimetype: string;
}

/** The parts of a content that the history shows. */
export interface Preview {
  text: string | null;
  caption: string | null;
  filename: string | null;
}

/** The behaviour of a kind. Declared as methods, whose bivariance lets the table accept a content of any kind. */
export interface Kind<Content> {
  preview(content: Content): Preview;
  /** Returns the UTF-16 code units of all texts in the row, to estimate the size of its commit. */
  characters(content: Content): number;
  /**
   * Returns what is handed to the connection. `pathOf` returns the path of a stored file;
   * the attachment must be stored.
   */
  body(content: Content, pathOf: (fileId: string) => string): OutgoingBody;
  /** Returns the attachment, for kinds with a file: it is fetched, stored and uploaded before the message leaves. */
  attachment?(content: Content): Attachment | null;
  /**
   * Returns why a file with this beginning is unsuitable, as a validation message for its
   * field; null if it is suitable.
   */
  refusal?(head: Uint8Array, content: Content): string | null;
  /** Returns the content with its fetched file. */
  withAttachment?(content: Content, fetched: Attachment<StoredFile>): Content;
}
