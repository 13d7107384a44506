/** The response of `GET /media/{id}`, independent of the framework: link, expiry, range, safe headers. */
import { notFound, Problem } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import type { MediaLinks } from "./signed_link.ts";
import { type FileRecord, mediaKeys } from "./rows.ts";
import type { MediaStore } from "./store.ts";

interface MediaRequest extends FileRequest {
  fileId: string;
  /** Query values; empty if missing. */
  expires: string;
  signature: string;
}

/** What of a request concerns the file that is asked for. */
interface FileRequest {
  method: "GET" | "HEAD";
  /** The headers `Range`, `If-Range` and `If-None-Match`; null if missing. */
  range: string | null;
  ifRange: string | null;
  ifNoneMatch: string | null;
}

/** Responds with 200, 206 or 304, streaming the file. Throws Problem range_not_satisfiable, not_found. */
type ServeFile = (record: FileRecord, request: FileRequest) => Promise<Response>;

/**
 * As `ServeFile`. Throws Problem not_found for a link that is forged or expired and for a file that is gone, which are
 * indistinguishable from outside.
 */
export type ServeMedia = (request: MediaRequest) => Promise<Response>;

/** Types that a browser may display; all others are downloads. */
const SHOWN = new Set([
  "image/jpeg",
  "image/png",
  "image/gif",
  "image/webp",
  "video/mp4",
  "video/3gpp",
  "audio/ogg",
  "audio/mpeg",
  "audio/mp4",
  "audio/aac",
  "audio/wav",
]);
/** Types that a browser could execute; they are sent as plain bytes, whatever the sender declared. */
const ACTIVE = /html|svg|xml|script|wasm|css/i;
/** If a browser displays a stranger's file after all, it must execute and load nothing. */
const CONTENT_POLICY = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox";

export function makeServeMedia(
  { kv, serveFile, links, runtime }: { kv: Kv; serveFile: ServeFile; links: MediaLinks; runtime: Runtime },
): ServeMedia {
  return async (request) => {
    const now = runtime.clock.now();
    if (!links.verify(request.fileId, request) || now >= Number(request.expires) * 1000) throw notFound("file");
    const { value: record } = await kv.get(mediaKeys.file(request.fileId));
    if (!record || record.expiresAt === null || now >= record.expiresAt) throw notFound("file");
    return await serveFile(record, request);
  };
}

export function makeServeFile(
  { media, runtime }: { media: Pick<MediaStore, "read">; runtime: Pick<Runtime, "clock"> },
): ServeFile {
  return async (record, request) => {
    const now = runtime.clock.now();
    const headers = headersOf(record, now);
    const tag = etagOf(record);
    if (request.ifNoneMatch?.includes(tag)) return new Response(null, { status: 304, headers });
    // If the client's copy is of another version, it needs the whole file (RFC 9110, 13.1.5).
    const range = request.ifRange === null || request.ifRange === tag ? readRange(request.range, record.size) : null;
    if (range === "unsatisfiable") {
      throw new Problem("range_not_satisfiable", `The file has ${record.size} bytes.`, {
        headers: { "content-range": `bytes */${record.size}` },
      });
    }
    const { start, end } = range ?? { start: 0, end: record.size - 1 };
    const length = end - start + 1;
    headers.set("content-length", String(length));
    if (range) headers.set("content-range", `bytes ${start}-${end}/${record.size}`);
    const body = await media.read(record.id, { start, length });
    if (request.method === "HEAD") await body.cancel();
    return new Response(request.method === "HEAD" ? null : body, { status: range ? 206 : 200, headers });
  };
}

function headersOf(record: FileRecord, now: number): Headers {
  const kind = record.mimetype.split(";", 1)[0]!.trim().toLowerCase();
  const shown = SHOWN.has(kind);
  const left = Math.floor(((record.expiresAt ?? now) - now) / 1000);
  return new Headers({
    "content-type": !shown && ACTIVE.test(kind) ? "application/octet-stream" : record.mimetype,
    "content-disposition": `${shown ? "inline" : "attachment"}; ${filenameParameters(record.filename)}`,
    "x-content-type-options": "nosniff",
    "content-security-policy": CONTENT_POLICY,
    // A page that reads the feed also downloads files; possession of the link is sufficient.
    "access-control-allow-origin": "*",
    "cross-origin-resource-policy": "cross-origin",
    "referrer-policy": "no-referrer",
    "accept-ranges": "bytes",
    "etag": etagOf(record),
    // Some runtimes and proxies would compress the response, and ranges would then refer to other bytes.
    "cache-control": `private, max-age=${left}, immutable, no-transform`,
  });
}

function etagOf({ sha256 }: FileRecord): string {
  return `"${sha256}"`;
}

/** Returns the name in both forms, as RFC 6266 advises: ASCII for old clients, and UTF-8. */
function filenameParameters(filename: string): string {
  const ascii = filename.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const utf8 = encodeURIComponent(filename.toWellFormed()).replace(
    /['()*]/g,
    (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase(),
  );
  return `filename="${ascii}"; filename*=UTF-8''${utf8}`;
}

/** Parses a single byte range (RFC 9110, 14.1.2). Null means the whole file, also for forms that may be ignored. */
function readRange(header: string | null, size: number): { start: number; end: number } | "unsatisfiable" | null {
  const match = /^bytes=(\d*)-(\d*)$/i.exec(header?.replaceAll(" ", "") ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return null;
  if (match[1] === "") {
    const last = Number(match[2]);
    if (last === 0 || size === 0) return "unsatisfiable";
    return { start: Math.max(0, size - last), end: size - 1 };
  }
  const start = Number(match[1]);
  const end = match[2] === "" ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[2] !== "" && Number(match[2]) < start) return null;
  return start < size ? { start, end } : "unsatisfiable";
}
