/** Reads request bodies: bounded in size, depth and number of values, in strict UTF-8. */
import { setImmediate } from "node:timers/promises";
import { GatheredBytes } from "../../base/gathered_bytes.ts";
import { Problem } from "../../errors.ts";
import type { Clock } from "../../runtime.ts";

export const MIB = 1024 ** 2;

/** Deeper than any request of this API needs, and far from what overflows a recursive reader. */
const MAX_DEPTH = 32;
/** Members of an object: far more than any request needs, yet parsed and validated within a few milliseconds. */
const MAX_MEMBERS = 1_000;
/** Values of a body: enough for the 10,000 messages of a bulk with 50 each. */
const MAX_VALUES = 500_000;

/**
 * Limits for reading the rest of a refused body: size, chunks beyond one for each kilobyte, time, and time without a
 * byte. Enough for a slightly large upload. A chunk of one byte takes as much of the thread's time as one of 64 KiB.
 */
const REST_BYTES = 128 * MIB;
const REST_CHUNKS = 10_000;
const REST_MS = 30_000;
const REST_IDLE_MS = 5_000;

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/** Throws Problem unsupported_media_type unless the body has the given type, no encoding, and no charset but UTF-8. */
export function checkContentType(request: Request, expected: "application/json" | "multipart/form-data"): void {
  const contentType = request.headers.get("content-type") ?? "";
  if (contentType !== expected) checkType(contentType, expected);
  const encoding = request.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding !== "identity") {
    throw new Problem("unsupported_media_type", `The content-encoding "${encoding}" is not supported.`);
  }
}

function checkType(contentType: string, expected: string): void {
  const type = contentType.replace(/;.*/s, "").trim().toLowerCase();
  if (type !== expected) {
    const got = type === "" ? "no content-type was sent" : `"${type}" was sent`;
    throw new Problem("unsupported_media_type", `The body must be ${expected}; ${got}.`);
  }
  const charset = /;\s*charset="?([^\s;"]+)/i.exec(contentType)?.[1] ?? "utf-8";
  if (!/^(utf-?8|us-ascii)$/i.test(charset)) {
    throw new Problem("unsupported_media_type", `The charset "${charset}" is not supported; send UTF-8.`);
  }
}

/** Throws Problem payload_too_large if the announced length exceeds the limit, before anything is read. */
export function checkLength(request: Request, maxBytes: number): void {
  const length = request.headers.get("content-length");
  if (length !== null && Number(length) > maxBytes) throw tooLarge(maxBytes);
}

interface ReadOptions {
  maxBytes: number;
  /** Called with a number of bytes before they are held in memory; may throw. */
  count?: (bytes: number) => void;
}

/**
 * Resolves to the whole body. Throws Problem payload_too_large, malformed_json if the body ends early, and what `count`
 * throws.
 */
export async function readBytes(
  request: Request,
  { maxBytes, count = () => {} }: ReadOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  checkLength(request, maxBytes);
  // With a length the server reads no further than that; a chunked body must be counted.
  const length = request.headers.get("content-length");
  if (length !== null) {
    count(Number(length) || 0);
    try {
      return new Uint8Array(await request.arrayBuffer());
    } catch (cause) {
      brokenOff(cause);
    }
  }
  const body = new GatheredBytes();
  for await (const chunk of chunksOf(request)) {
    if (body.size + chunk.length > maxBytes) throw tooLarge(maxBytes);
    count(chunk.length);
    body.add(chunk);
  }
  return body.all;
}

/**
 * Yields the body as it arrives. The caller may stop early and leave the rest to `discardRest`. Throws Problem
 * malformed_json if the body ends early.
 */
export async function* chunksOf(request: Request): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  if (request.body === null) return;
  try {
    for await (const chunk of request.body.values({ preventCancel: true })) {
      yield chunk;
      // A body that has already arrived would otherwise keep the thread busy until its end.
      await setImmediate();
    }
  } catch (cause) {
    brokenOff(cause);
  }
}

/**
 * Reads and drops the rest of a body, so that the client can finish sending and then read its answer, which an early
 * close of the connection would lose. Resolves to whether the body ended within the limits.
 */
export async function discardRest({ body, headers }: Request, clock: Clock): Promise<boolean> {
  // Locked: the whole body was read.
  if (body === null || body.locked) return true;
  if (Number(headers.get("content-length")) > REST_BYTES) return false;
  const late = new AbortController();
  const giveUp = () => late.abort();
  let cancel = clock.after(REST_IDLE_MS, giveUp);
  let size = 0;
  let chunks = 0;
  const latest = clock.now() + REST_MS;
  const nowhere = new WritableStream<Uint8Array>({
    write(chunk) {
      cancel();
      cancel = clock.after(REST_IDLE_MS, giveUp);
      size += chunk.length;
      chunks++;
      if (size > REST_BYTES || chunks > REST_CHUNKS + size / 1_000 || clock.now() > latest) giveUp();
    },
  });
  try {
    await body.pipeTo(nowhere, { signal: late.signal });
    return true;
  } catch {
    return false;
  } finally {
    cancel();
  }
}

/**
 * Parses JSON in UTF-8, at most 32 levels deep and with a bounded number of values, because a limit on bytes alone
 * bounds neither time nor memory. Throws Problem malformed_json, validation_failed.
 */
export function parseJson(bytes: Uint8Array): unknown {
  assertBounded(bytes);
  try {
    return JSON.parse(strictUtf8.decode(bytes));
  } catch (cause) {
    throw new Problem("malformed_json", bytes.length === 0 ? "The body is empty." : sentence(cause), { cause });
  }
}

const [QUOTE, BACKSLASH, COMMA, OPEN_LIST, OPEN_OBJECT, CLOSE_LIST, CLOSE_OBJECT] = new TextEncoder().encode(
  '"\\,[{]}',
);

/** Counts levels, values and members of the JSON before it is parsed. Throws Problem validation_failed. */
function assertBounded(bytes: Uint8Array): void {
  /** Number of commas in the open object of each level; negative for a list. */
  const commas = new Int32Array(MAX_DEPTH + 1);
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        while (++at < bytes.length && bytes[at] !== QUOTE) if (bytes[at] === BACKSLASH) at++;
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        if (++depth > MAX_DEPTH) throw badBody(`is nested deeper than ${MAX_DEPTH} levels`);
        commas[depth] = bytes[at] === OPEN_OBJECT ? 0 : -1;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        if (depth > 0) depth--;
        break;
      case COMMA:
        if (++values === MAX_VALUES) throw badBody(`has more than ${MAX_VALUES} values`);
        if (commas[depth]! >= 0 && ++commas[depth]! === MAX_MEMBERS) {
          throw badBody(`has an object of more than ${MAX_MEMBERS} members`);
        }
    }
  }
}

/** Returns the refusal of a body as a whole. */
export function badBody(message: string): Problem {
  return new Problem("validation_failed", `The body ${message}.`, { errors: [{ path: "body", message }] });
}

export function tooLarge(maxBytes: number): Problem {
  const limit = maxBytes >= MIB ? `${Math.floor(maxBytes / MIB)} MiB` : `${maxBytes} bytes`;
  return new Problem("payload_too_large", `The body may have ${limit} at most.`);
}

function brokenOff(cause: unknown): never {
  throw new Problem("malformed_json", "The body ended before it was complete.", { cause });
}

/** Returns the parser's message without the excerpt of the body that some engines quote. */
function sentence(cause: unknown): string {
  const position = /position \d+|line \d+ column \d+/.exec(String(cause))?.[0];
  return position ? `The body cannot be read as JSON at ${position}.` : "The body cannot be read as JSON in UTF-8.";
}
