/** The rows of files. */
import { key, prefix } from "../store/kv.ts";

/** A stored file. */
export interface FileRecord {
  id: string;
  accountId: string;
  size: number;
  /** Hex. */
  sha256: string;
  mimetype: string;
  filename: string;
  /** Unix ms; then the link returns 404 and the sweep removes the file. Null while a queued message needs the file. */
  expiresAt: number | null;
  /** Of a file that was uploaded to be sent later: for which line, and until when it is found (Unix ms). */
  upload?: { lineId: string; usableUntil: number };
}

/** An object that may exist in the bucket, whole or in parts. */
export interface ObjectRow {
  /** Id of a multipart upload; a listing of the bucket would not show the parts of an interrupted one. */
  uploadId: string | null;
}

export const mediaKeys = {
  file: (fileId: string) => key<FileRecord>("file", fileId),
  files: () => prefix<FileRecord>("file"),
  /** Index of received files by their `expiresAt`; the value is the size in bytes. */
  fileEnd: (expiresAt: number, fileId: string) => key<number>("file_end", expiresAt, fileId),
  fileEnds: () => prefix<number>("file_end"),
  /** A line's uploads by their `expiresAt`. */
  upload: (lineId: string, expiresAt: number, fileId: string) => key<true>("upload", lineId, expiresAt, fileId),
  uploads: (lineId: string) => prefix<true>("upload", lineId),
  /** An object by the time of its next check (Unix ms); written before the object and removed after it. */
  object: (lookAt: number, fileId: string) => key<ObjectRow>("file_object", lookAt, fileId),
  objects: () => prefix<ObjectRow>("file_object"),
};
