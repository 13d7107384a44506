/**
 * The pages: one document for every address below `/panel`, and the files that it loads, all of them ours. Each file
 * goes out compressed, with an ETag. Addresses are relative, so the panel also stands below a proxy's path.
 */
import { createHash } from "node:crypto";
import { extname, join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import type { Hono } from "@hono/hono";
import htm from "htm" with { type: "text" };
import preact from "preact" with { type: "text" };
import hooks from "preact/hooks" with { type: "text" };
import type { ApiContext, ApiEnv } from "../http/api/context.ts";

const FOLDER = join(import.meta.dirname!, "web");
const ASSETS = "/panel/assets";

/** No script, style or connection from anywhere but here. */
const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache",
};

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Of npm's packages, their modules as they are; a browser finds no module by a bare name. */
const LIBRARIES: Readonly<Record<string, string>> = {
  "preact.js": preact,
  "hooks.js": hooks.replaceAll(/from\s*"preact"/g, 'from"./preact.js"'),
  "htm.js": htm,
};

interface Packed {
  type: string;
  etag: string;
  plain: Uint8Array<ArrayBuffer>;
  gzip: Uint8Array<ArrayBuffer>;
  br: Uint8Array<ArrayBuffer>;
}

export function addPages(app: Hono<ApiEnv>): void {
  const packed = new Map<string, Promise<Packed | null>>();
  const kept = (name: string, read: () => Promise<string | null>) => {
    const known = packed.get(name) ?? read().then((text) => text === null ? null : pack(name, text));
    packed.set(name, known);
    return known;
  };

  app.get(`${ASSETS}/:name{[a-z0-9_]+(/[a-z0-9_]+)?\\.(js|css|svg)}`, async (c) => {
    c.set("route", ASSETS);
    const name = c.req.param("name");
    const found = await kept(name, () => readAsset(name));
    return found ? give(c, found) : c.notFound();
  });

  const page = async (c: ApiContext) => {
    c.set("route", "/panel");
    // How far below `/panel` the browser believes to be.
    const depth = c.req.path.split("/").length - 2;
    const root = depth === 0 ? "panel/" : "../".repeat(depth - 1) || "./";
    const found = await kept(
      `${root}index.html`,
      async () => (await Deno.readTextFile(join(FOLDER, "index.html"))).replaceAll("{root}", root),
    );
    return give(c, found!);
  };
  app.get("/panel", page);
  app.get("/panel/*", async (c, next) => {
    // No page below the API, and none that asks for a file.
    if (/^\/panel\/(api|assets)(\/|$)/.test(c.req.path) || c.req.path.split("/").length > 8) return await next();
    return await page(c);
  });
}

async function readAsset(name: string): Promise<string | null> {
  const library = /^lib\/(.*)$/.exec(name)?.[1];
  if (library) return LIBRARIES[library] ?? null;
  try {
    return await Deno.readTextFile(join(FOLDER, name));
  } catch {
    return null;
  }
}

function pack(name: string, text: string): Packed {
  const plain = new TextEncoder().encode(text);
  const etag = `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`;
  return {
    type: TYPES[extname(name)]!,
    etag,
    plain,
    gzip: new Uint8Array(gzipSync(plain)),
    br: new Uint8Array(brotliCompressSync(plain)),
  };
}

function give(c: ApiContext, { type, etag, plain, gzip, br }: Packed): Response {
  const headers = { ...HEADERS, etag, vary: "accept-encoding" };
  if (c.req.header("if-none-match")?.includes(etag)) return c.body(null, 304, headers);
  const accepted = c.req.header("accept-encoding") ?? "";
  const encoding = /\bbr\b/.test(accepted) ? "br" : /\bgzip\b/.test(accepted) ? "gzip" : null;
  const body = encoding === "br" ? br : encoding === "gzip" ? gzip : plain;
  return c.body(body, 200, {
    ...headers,
    "content-type": type,
    ...(encoding && { "content-encoding": encoding }),
  });
}
