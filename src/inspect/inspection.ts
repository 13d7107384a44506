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
  /** How much memory the process may take, in bytes. */
  memoryBytes: number;
}

/** The command-line argument by which `main.ts` runs `file_facts.ts`. */
export const INSPECT = "inspect-file";

/** What the process prints first when it has taken too much memory, so that its parent kills it. */
export const OVER_MEMORY = "!";
