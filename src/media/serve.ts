/** What `GET /media/{id}` answers, apart from the framework: link, time, range, safe headers. */

export interface MediaRequest {
  fileId: string;
  /** Query values, empty when missing. */
  expires: string;
  signature: string;
  method: "GET" | "HEAD";
  /** The header `Range`, or null. */
  range: string | null;
}

/**
 * Answers 200, 206 or 416, with the file streamed from disk. Throws Problem not_found for a link that is forged, altered
 * or past its second, and for a file that is gone: the three look the same from outside.
 */
export type ServeMedia = (request: MediaRequest) => Promise<Response>;
