/** The rows of files. */
import { key, prefix } from "../store/kv.ts";

/** A file on disk: what it is and until when. */
export interface FileRecord {
  id: string;
  accountId: string;
  size: number;
  /** Hex. */
  sha256: string;
  mimetype: string;
  filename: string;
  /** After this the link answers 404 and the sweep removes the file; null while a queued message needs it. */
  expiresAt: number | null;
}

/** An object in the bucket that may be there, whole or in parts. */
export interface ObjectRow {
  /** Of an upload in parts; a listing does not show the parts of an interrupted one. */
  uploadId: string | null;
}

export const mediaKeys = {
  file: (fileId: string) => key<FileRecord>("file", fileId),
  files: () => prefix<FileRecord>("file"),
  /** A received file by when it ends (Unix ms), as its row says; the value is its size in bytes. */
  fileEnd: (expiresAt: number, fileId: string) => key<number>("file_end", expiresAt, fileId),
  fileEnds: () => prefix<number>("file_end"),
  /** An object, by when to check whether a file still needs it (Unix ms): written before the object, removed after it. */
  object: (lookAt: number, fileId: string) => key<ObjectRow>("file_object", lookAt, fileId),
  objects: () => prefix<ObjectRow>("file_object"),
};
