/**
 * The media host of the simulated network: HTTPS on loopback. Clients upload encrypted files under their hash and get a
 * path by which others download them, whole or in part. Files lie in a temporary folder, the oldest go first.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { type Runtime, sleep } from "../runtime.ts";
import { makeServerCertificate } from "./certificate.ts";
import type { MediaAccess } from "./device.ts";

/** Larger than the largest file that a gateway accepts (100 MiB), with room for encryption. */
const FILE_MAX_BYTES = 110 * 1024 * 1024;
/** All files together; past it the oldest go, as the real network forgets files after some weeks. */
const TOTAL_MAX_BYTES = 2 * 1024 * 1024 * 1024;
/** Where downloads lie, as on the real host. */
const DOWNLOAD_PREFIX = "/v/t62.7118-24/";
const UPLOAD_PATH = /^\/(?:mms|product|pps)\/[a-z-]+\/([A-Za-z0-9_-]+)$/;

export interface MediaHost extends MediaAccess {
  /** Direct paths of the files that it has, oldest first. */
  paths(): string[];
  /** Loses a file, as the real host does with old ones; false when there is none. */
  remove(directPath: string): Promise<boolean>;
  close(): Promise<void>;
}

interface StoredFile {
  size: number;
  location: string;
}

export interface MediaOptions {
  runtime: Runtime;
  /** How long the host takes to answer an upload of the line that begins now; unless given, no time. */
  uploadMs?: (line: string) => number;
}

/** Starts on a free port of 127.0.0.1. */
export async function startMedia({ runtime, uploadMs = () => 0 }: MediaOptions): Promise<MediaHost> {
  const { caPem, certPem, keyPem } = await makeServerCertificate(runtime);
  const folder = await Deno.makeTempDir({ prefix: "paloma-sandbox-media-" });
  const files = new FileShelf(folder, runtime);
  const auth = Buffer.from(runtime.random.bytes(24)).toString("base64url");
  const stop = new AbortController();
  const host: HostState = {
    files,
    auth,
    taken: (line) => sleep(runtime.clock, uploadMs(line), stop.signal),
  };
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, cert: certPem, key: keyPem, signal: stop.signal, onListen: () => {} },
    (request) =>
      answer(request, host).catch((error) => {
        runtime.log.warn({ err: error }, "the sandbox's media host failed");
        return new Response(null, { status: 500 });
      }),
  );
  const address = `127.0.0.1:${server.addr.port}`;
  return {
    url: `https://${address}`,
    host: address,
    auth,
    caPem,
    paths: () => files.paths(),
    remove: (directPath) => files.remove(directPath),
    close: async () => {
      // Not gracefully: a client that hangs would keep it open.
      stop.abort();
      await server.finished;
      await Deno.remove(folder, { recursive: true });
    },
  };
}

interface HostState {
  files: FileShelf;
  auth: string;
  /** Resolves when the host has taken as long over an upload of this line as it is to take. */
  taken(line: string): Promise<void>;
}

async function answer(request: Request, { files, auth, taken }: HostState): Promise<Response> {
  const { pathname, searchParams, origin } = new URL(request.url);
  if (request.method === "POST") {
    const token = UPLOAD_PATH.exec(pathname)?.[1];
    if (!token) return refuse(404, "no such upload path");
    const [given, line] = (searchParams.get("auth") ?? "").split(".");
    if (given !== auth) return refuse(401, "the auth token is wrong");
    const stored = await files.store(request.body, token);
    if (line) await taken(line);
    return "path" in stored
      ? Response.json({ url: `${origin}${stored.path}`, direct_path: stored.path })
      : refuse(stored.status, stored.reason);
  }
  if (request.method !== "GET") return refuse(405, "only GET and POST");
  return await files.serve(pathname, request.headers.get("range"));
}

function refuse(status: number, reason: string): Response {
  return Response.json({ error: { code: status, message: reason } }, { status });
}

class FileShelf {
  #folder: string;
  #runtime: Runtime;
  #files = new Map<string, StoredFile>();
  #bytes = 0;

  constructor(folder: string, runtime: Runtime) {
    this.#folder = folder;
    this.#runtime = runtime;
  }

  paths(): string[] {
    return [...this.#files.keys()];
  }

  /** Streams to disk; the token must be the SHA-256 of what came, as the real host checks it. */
  async store(
    body: ReadableStream<Uint8Array> | null,
    token: string,
  ): Promise<{ path: string } | { status: number; reason: string }> {
    const name = Buffer.from(this.#runtime.random.bytes(18)).toString("base64url");
    const location = join(this.#folder, name);
    const hash = createHash("sha256");
    let size = 0;
    const file = await Deno.open(location, { createNew: true, write: true });
    try {
      for await (const chunk of body ?? []) {
        size += chunk.length;
        if (size > FILE_MAX_BYTES) break;
        hash.update(chunk);
        await writeAll(file, chunk);
      }
    } catch (error) {
      // The uploader went away, or the disk is full: nothing of it stays.
      await Deno.remove(location);
      throw error;
    } finally {
      file.close();
    }
    const wrong = size > FILE_MAX_BYTES
      ? { status: 413, reason: "the file is too large" }
      : hash.digest("base64url") !== token
      ? { status: 400, reason: "the token is not the file's hash" }
      : null;
    if (wrong) {
      await Deno.remove(location);
      return wrong;
    }
    const path = `${DOWNLOAD_PREFIX}${name}`;
    this.#files.set(path, { size, location });
    this.#bytes += size;
    for (const oldest of this.paths()) {
      if (this.#bytes <= TOTAL_MAX_BYTES) break;
      await this.remove(oldest);
    }
    return { path };
  }

  async remove(path: string): Promise<boolean> {
    const file = this.#files.get(path);
    if (!file) return false;
    this.#files.delete(path);
    this.#bytes -= file.size;
    await Deno.remove(file.location);
    return true;
  }

  async serve(path: string, range: string | null): Promise<Response> {
    const stored = this.#files.get(path);
    if (!stored) return refuse(404, "there is no such file, or not any more");
    const asked = range === null ? { start: 0, end: stored.size - 1 } : readRange(range, stored.size);
    if (!asked) return new Response(null, { status: 416, headers: { "content-range": `bytes */${stored.size}` } });
    const file = await Deno.open(stored.location);
    await file.seek(asked.start, Deno.SeekMode.Start);
    const headers = new Headers({
      "content-type": "application/octet-stream",
      "content-length": String(asked.end - asked.start + 1),
      "accept-ranges": "bytes",
    });
    if (range !== null) headers.set("content-range", `bytes ${asked.start}-${asked.end}/${stored.size}`);
    // A whole file goes out as it lies, past this process's heap.
    const body = range === null ? file.readable : file.readable.pipeThrough(firstBytes(asked.end - asked.start + 1));
    return new Response(body, { status: range === null ? 200 : 206, headers });
  }
}

async function writeAll(file: Deno.FsFile, chunk: Uint8Array): Promise<void> {
  for (let written = 0; written < chunk.length;) written += await file.write(chunk.subarray(written));
}

/** One range of the header `Range`; null for one that cannot be served. An end past the file's is the file's. */
function readRange(range: string, size: number): { start: number; end: number } | null {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(range) ?? [];
  if (!first && !last) return null;
  const start = first ? Number(first) : Math.max(0, size - Number(last));
  const end = first && last ? Math.min(Number(last), size - 1) : size - 1;
  return start <= end ? { start, end } : null;
}

/** Lets `count` bytes through, then ends both sides. */
function firstBytes(count: number): TransformStream<Uint8Array, Uint8Array> {
  let left = count;
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, left));
      left -= Math.min(left, chunk.length);
      if (left === 0) controller.terminate();
    },
  });
}
