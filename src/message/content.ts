/** What can be sent, and in which kind a file arrives (spec, "Sending messages"). */

export type FileKind = "image" | "video" | "audio" | "document";

/** A file that lies in the media store until the message ends. */
export interface StoredFile {
  /** Media store id. */
  fileId: string;
  size: number;
  /** Hex. */
  sha256: string;
}

export type OutgoingContent =
  | { kind: "text"; text: string }
  | {
    kind: FileKind;
    file: StoredFile;
    filename: string;
    mimetype: string;
    caption: string | null;
  };
