/** Files that do not change while the gateway runs: compressed once and served with an ETag. */
import { createHash } from "node:crypto";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { ApiContext } from "./route.ts";

export interface StaticFile {
  type: string;
  etag: string;
  plain: Uint8Array<ArrayBuffer>;
  gzip: Uint8Array<ArrayBuffer>;
  br: Uint8Array<ArrayBuffer>;
}

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
  json: "application/json",
};

/** Forbids scripts, styles and connections of other origins, because people type API keys into the pages. */
export const PAGE_HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  // A key restricted to domains needs to see the page's origin.
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
};

/** More than this holds up the event loop, for 0.8 s with the OpenAPI document, to save a tenth of the bytes. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

/** Prepares a text file for serving; the name's extension determines its type. */
export function staticFile(name: string, text: string): StaticFile {
  const plain = new TextEncoder().encode(text);
  return {
    type: TYPES[name.split(".").at(-1)!]!,
    etag: `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`,
    plain,
    gzip: new Uint8Array(gzipSync(plain)),
    br: new Uint8Array(brotliCompressSync(plain, BROTLI)),
  };
}

/** Answers with the file in an encoding that the browser accepts, or with 304 if the browser has it. */
export function giveFile(c: ApiContext, file: StaticFile, headers: Readonly<Record<string, string>>): Response {
  const { type, etag } = file;
  const common = { ...headers, etag, vary: "accept-encoding", "cache-control": "no-cache" };
  if (c.req.header("if-none-match")?.includes(etag)) return c.body(null, 304, common);
  const accepted = c.req.header("accept-encoding") ?? "";
  const encoding = /\bbr\b/.test(accepted) ? "br" : /\bgzip\b/.test(accepted) ? "gzip" : null;
  return c.body(file[encoding ?? "plain"], 200, {
    ...common,
    "content-type": type,
    ...(encoding && { "content-encoding": encoding }),
  });
}
