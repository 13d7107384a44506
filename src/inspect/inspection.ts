/** Requests to the process that reads an untrusted file, and its answers. */

/** A file that somebody else chose. */
export interface UntrustedFile {
  path: string;
  size: number;
  mimetype: string;
  /** What it is sent as. */
  kind: "image" | "video" | "audio" | "document" | "sticker" | "voice";
}

/** The facts of a file; those that it does not contain are absent. */
export interface FileFacts {
  width?: number;
  height?: number;
  /** A small JPEG. */
  jpegThumbnail?: Uint8Array;
  seconds?: number;
  /** The bars that phones draw for a voice note: 64, each from 0 to 100. */
  waveform?: Uint8Array;
  pageCount?: number;
}

/** The second argument of the process, as JSON. */
export interface InspectRequest {
  /** Null for an image on standard input. */
  file: UntrustedFile | null;
  /** What to read from standard input instead of a file. */
  outside?: OutsideRequest;
  /** How much memory the process may take, in bytes. */
  memoryBytes: number;
}

/** What another device of an account made (`outside.ts`). Binary values are base64. */
export type OutsideRequest =
  /** A packed part of the history: `ReadHistory`. */
  | { read: "history" }
  /** A file of the settings: the last change, if any, of the setting with one of these indexes: `FoundSetting[]`. */
  | { read: "settings"; form: "snapshot" | "mutations"; wanted: { keyId: string; index: string }[] };

export interface ReadHistory {
  /** `chat` is the LID if the history names it; times are Unix seconds. */
  tokens: { chat: string; token: string; at: number; sentAt: number | null }[];
  salt: string | null;
}

export interface FoundSetting {
  isRemoved: boolean;
  keyId: string;
  blob: string;
}

/** The command-line argument by which `main.ts` runs `file_facts.ts`. */
export const INSPECT = "inspect-file";

/** What the process prints first when it has taken too much memory, so that its parent kills it. */
export const OVER_MEMORY = "!";
