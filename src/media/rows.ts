/** The rows of files. */
import type { FileRecord } from "./store.ts";
import { key, prefix } from "../store/kv.ts";

export const mediaKeys = {
  /** A file on disk: what it is and until when. */
  file: (fileId: string) => key<FileRecord>("file", fileId),
  files: () => prefix<FileRecord>("file"),
  /** A received file by when it ends (Unix ms), as its row says; the value is its size in bytes. */
  fileEnd: (expiresAt: number, fileId: string) => key<number>("file_end", expiresAt, fileId),
  fileEnds: () => prefix<number>("file_end"),
};
