/** The files of the media host, stored in a folder by download path; the oldest are removed first. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { writeAll } from "../../base/files.ts";
import type { Runtime } from "../../runtime.ts";

/** More than the largest file that a gateway accepts (100 MiB), plus encryption overhead. */
const FILE_MAX_BYTES = 110 * 1024 * 1024;
/**
 * Limit on the total size. Beyond it the oldest files are removed, as the real network removes files after some weeks.
 */
const TOTAL_MAX_BYTES = 2 * 1024 * 1024 * 1024;
/** The path prefix of downloads, as on the real host. */
const DOWNLOAD_PREFIX = "/v/t62.7118-24/";

export class FileShelf {
  #folder: string;
  #runtime: Runtime;
  /** The sizes of the files by name, the oldest first. */
  #sizes = new Map<string, number>();
  #bytes = 0;

  constructor(folder: string, runtime: Runtime) {
    this.#folder = folder;
    this.#runtime = runtime;
  }

  paths(): string[] {
    return [...this.#sizes.keys()].map(directPath);
  }

  /** Streams a file to disk. As on the real host, the token must be the SHA-256 of the content. */
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
      // The uploader disconnected, or the disk is full: leave no partial file behind.
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
    this.#sizes.set(name, size);
    this.#bytes += size;
    for (const oldest of this.paths()) {
      if (this.#bytes <= TOTAL_MAX_BYTES) break;
      await this.remove(oldest);
    }
    return { path: directPath(name) };
  }

  async remove(directPath: string): Promise<boolean> {
    const name = nameIn(directPath);
    const size = this.#sizes.get(name);
    if (size === undefined) return false;
    this.#sizes.delete(name);
    this.#bytes -= size;
    await Deno.remove(join(this.#folder, name));
    return true;
  }

  /** Returns the file, or the requested range of it; null if the file does not exist or has been removed. */
  async serve(directPath: string, range: string | null): Promise<Response | null> {
    const name = nameIn(directPath);
    const size = this.#sizes.get(name);
    if (size === undefined) return null;
    const asked = range === null ? { start: 0, end: size - 1 } : readRange(range, size);
    if (!asked) return new Response(null, { status: 416, headers: { "content-range": `bytes */${size}` } });
    const file = await Deno.open(join(this.#folder, name));
    await file.seek(asked.start, Deno.SeekMode.Start);
    const headers = new Headers({
      "content-type": "application/octet-stream",
      "content-length": String(asked.end - asked.start + 1),
      "accept-ranges": "bytes",
    });
    if (range !== null) headers.set("content-range", `bytes ${asked.start}-${asked.end}/${size}`);
    // Streams a whole file from disk, outside this process's heap.
    const body = range === null ? file.readable : file.readable.pipeThrough(endingAfter(asked.end - asked.start + 1));
    return new Response(body, { status: range === null ? 200 : 206, headers });
  }
}

/** Returns the path by which a message refers to a file. It has a query, like the real host's; clients append to it. */
function directPath(name: string): string {
  return `${DOWNLOAD_PREFIX}${name}?ccb=11-4&oh=${name.slice(0, 8)}&_nc_sid=5e03e0`;
}

/** Returns the file's name. The query is not part of it, because clients append to it. */
function nameIn(directPath: string): string {
  return directPath.startsWith(DOWNLOAD_PREFIX) ? directPath.slice(DOWNLOAD_PREFIX.length).split("?")[0]! : "";
}

/** Parses a `Range` header with one range; null if it cannot be served. An end beyond the file means the file's end. */
function readRange(range: string, size: number): { start: number; end: number } | null {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(range) ?? [];
  if (!first && !last) return null;
  const start = first ? Number(first) : Math.max(0, size - Number(last));
  const end = first && last ? Math.min(Number(last), size - 1) : size - 1;
  return start <= end ? { start, end } : null;
}

/** Passes `count` bytes through, then ends both sides. */
function endingAfter(count: number): TransformStream<Uint8Array, Uint8Array> {
  let left = count;
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, left));
      left -= Math.min(left, chunk.length);
      if (left === 0) controller.terminate();
    },
  });
}
