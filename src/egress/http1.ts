/**
 * Makes one HTTP/1.1 request on a connection given by the caller: the vetted one. Nothing is ever sent twice. For why
 * this is not `fetch` or `node:https` see docs/decisions/0004-own-http1-exchange.md.
 */
import { Buffer } from "node:buffer";
import { setImmediate } from "node:timers/promises";
import { writeAll } from "../base/files.ts";
import { GatheredBytes } from "../base/gathered_bytes.ts";

/** The part of `Deno.Conn` and `Deno.TlsConn` that an exchange needs. */
export interface ByteConnection {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  close(): void;
}

interface PlainRequest {
  /** Not HEAD, whose answers end with their head. */
  method: string;
  /** Path and query. */
  target: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array | StreamedBody | null;
}

/** A body that is streamed. */
export interface StreamedBody {
  content: AsyncIterable<Uint8Array>;
  /** Exact size of the content in bytes. */
  length: number;
}

export interface PlainResponse {
  status: number;
  headers: ResponseHeaders;
  /** The body as sent, without decoding. Ends as the framing says; throws if the connection ends earlier. */
  body: AsyncGenerator<Uint8Array<ArrayBuffer>>;
  /** Whether the connection can be reused; only ever true once the body has been read to its end. */
  mayContinue(): boolean;
}

/** Response headers with the semantics of `Headers` at lower cost: a webhook's response is little else. */
export class ResponseHeaders {
  readonly #values = new Map<string, string>();

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null;
  }

  append(name: string, value: string): void {
    const before = this.get(name);
    this.#values.set(name.toLowerCase(), before === null ? value : `${before}, ${value}`);
  }
}

/** The peer violates the protocol. */
export class BadResponse extends Error {
  override name = "BadResponse";
}

const MAX_HEAD_BYTES = 32 * 1024;
/** Most chunks of a body beyond one for each few bytes: each takes the thread's time, however small it is. */
const MAX_TINY_CHUNKS = 100_000;
const TINY_BYTES = 16;
/** Size of a read; the response to a webhook usually fits into one. */
const FIRST_READ_BYTES = 1024;
const READ_BYTES = 16 * 1024;
const MAX_INFORMATIONAL = 8;

/** Sends the request and reads the response's head. The caller closes the connection. */
export async function exchange(connection: ByteConnection, request: PlainRequest): Promise<PlainResponse> {
  const reader = new ByteReader(connection);
  // A server may respond (413, 401, …) and close without reading the body: the response counts, not our broken pipe.
  let sent = false;
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => {}); // the response may already be there
  const begin = encode(request);
  const sending = send(connection, { begin, body: request.body }, broken.reject).then(() => {
    sent = true;
    return null;
  }, (error: unknown) => error);
  // If the content fails, the server keeps waiting for the rest of it.
  const head = await Promise.race([readFinalHead(reader), broken.promise]).catch(async (error) => {
    throw (await Promise.race([sending, null])) ?? error;
  });
  const framing = framingOf(reader, head);
  let ended = false;
  const body = withEnd(framing.chunks, () => ended = true);
  const closes = /\bclose\b/i.test(head.headers.get("connection") ?? "") || head.version === "1.0";
  // After a response that came before the whole request was sent, the rest is still being written: no reuse.
  const mayContinue = () => sent && ended && framing.delimited && !closes && reader.isEmpty;
  return { status: head.status, headers: head.headers, body, mayContinue };
}

async function send(
  connection: ByteConnection,
  { begin, body }: { begin: Uint8Array; body: PlainRequest["body"] },
  contentFailed: (reason: unknown) => void,
): Promise<void> {
  await writeAll(connection, begin);
  if (body === null || body instanceof Uint8Array) return;
  for await (const bytes of reported(body.content, contentFailed)) await writeAll(connection, bytes);
}

/** Yields the same content; reports its failure before throwing it. */
async function* reported(
  content: AsyncIterable<Uint8Array>,
  failed: (reason: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* content;
  } catch (error) {
    failed(error);
    throw error;
  }
}

/** Encodes the head, followed by the body if that is in memory. */
function encode({ method, target, headers, body }: PlainRequest): Uint8Array {
  const lines = [`${method} ${target} HTTP/1.1`];
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[\w-]+$/.test(name) || /[^\x20-\x7e\t]/.test(value)) throw new TypeError(`the header ${name} is not valid`);
    lines.push(`${name}: ${value}`);
  }
  if (body) lines.push(`content-length: ${body.length}`);
  const head = new TextEncoder().encode(lines.join("\r\n") + "\r\n\r\n");
  return body instanceof Uint8Array ? Buffer.concat([head, body]) : head;
}

interface Head {
  version: string;
  status: number;
  headers: ResponseHeaders;
}

async function readFinalHead(reader: ByteReader): Promise<Head> {
  for (let i = 0; i < MAX_INFORMATIONAL; i++) {
    const head = await readHead(reader);
    if (head.status >= 200) return head;
    if (head.status === 101) break;
  }
  throw new BadResponse("the answer is an interim one without end");
}

async function readHead(reader: ByteReader): Promise<Head> {
  const statusLine = await reader.line();
  const match = /^HTTP\/(1\.[01]) ([1-5]\d\d)( .*)?$/.exec(statusLine);
  if (!match) throw new BadResponse("the answer is not HTTP/1.1");
  const headers = new ResponseHeaders();
  let left = MAX_HEAD_BYTES;
  for (;;) {
    const line = await reader.line();
    if (line === "") return { version: match[1]!, status: Number(match[2]), headers };
    left -= line.length;
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    if (left < 0 || !/^[!#$%&'*+.^_`|~\w-]+$/.test(name) || line.includes("\0") || line.includes("\r")) {
      throw new BadResponse("the answer has headers that are not valid");
    }
    headers.append(name, textOf(line.slice(colon + 1)).trim());
  }
}

/** Decodes a header value, given as one character per byte: UTF-8 if valid, otherwise Latin-1 (RFC 9110, 5.5). */
function textOf(value: string): string {
  if (!/[\x80-\xff]/.test(value)) return value;
  const text = Buffer.from(value, "latin1").toString("utf8");
  return text.includes("\ufffd") ? value : text;
}

interface Framing {
  chunks: AsyncIterable<Uint8Array<ArrayBuffer>>;
  /** Whether the body is delimited by framing rather than by the end of the connection. */
  delimited: boolean;
}

function framingOf(reader: ByteReader, { status, headers }: Head): Framing {
  if (status === 204 || status === 304) return { chunks: sized(reader, 0), delimited: true };
  const coding = headers.get("transfer-encoding");
  if (coding !== null) {
    if (coding.toLowerCase() !== "chunked") throw new BadResponse("the answer's transfer coding is not known");
    return { chunks: chunked(reader), delimited: true };
  }
  const length = headers.get("content-length");
  if (length === null) return { chunks: untilEnd(reader), delimited: false };
  if (!/^\d{1,15}$/.test(length)) throw new BadResponse("the answer's length is not valid");
  return { chunks: sized(reader, Number(length)), delimited: true };
}

/** Yields the same chunks; calls `ended` after the last. */
async function* withEnd(
  chunks: AsyncIterable<Uint8Array<ArrayBuffer>>,
  ended: () => void,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  yield* chunks;
  ended();
}

async function* sized(reader: ByteReader, length: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let left = length; left > 0;) {
    const bytes = await reader.some(left);
    if (bytes === null) throw new BadResponse("the connection ended before the body did");
    left -= bytes.length;
    yield bytes;
  }
}

/** Joins the chunks as far as they have arrived: a server may send each line of an export as a chunk of its own. */
async function* chunked(reader: ByteReader): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let joined = new GatheredBytes();
  function* arrived() {
    if (joined.size === 0 || (joined.size < READ_BYTES && !reader.isEmpty)) return;
    yield joined.all;
    joined = new GatheredBytes();
  }
  for (let left = MAX_TINY_CHUNKS;;) {
    yield* arrived();
    const size = /^([0-9a-f]{1,12})[ \t]*(;.*)?$/i.exec(await reader.line());
    if (!size) throw new BadResponse("the answer has a chunk without a size");
    const length = parseInt(size[1]!, 16);
    if (length === 0) break;
    left = Math.min(MAX_TINY_CHUNKS, left + length / TINY_BYTES - 1);
    if (left < 0) throw new BadResponse("the answer has too many tiny chunks");
    for await (const bytes of sized(reader, length)) {
      joined.add(bytes);
      yield* arrived();
    }
    if (await reader.line() !== "") throw new BadResponse("the answer has a chunk that is longer than its size");
  }
  if (joined.size > 0) yield joined.all;
  for (let left = MAX_HEAD_BYTES; left > 0;) {
    const trailer = await reader.line();
    if (trailer === "") return;
    left -= trailer.length;
  }
  throw new BadResponse("the answer has trailers without end");
}

async function* untilEnd(reader: ByteReader): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let bytes = await reader.some(READ_BYTES); bytes !== null; bytes = await reader.some(READ_BYTES)) yield bytes;
}

/** Reads lines and byte chunks from a connection. */
class ByteReader {
  #connection: ByteConnection;
  #held: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #nextBytes = FIRST_READ_BYTES;

  constructor(connection: ByteConnection) {
    this.#connection = connection;
  }

  /** Whether all bytes read have been consumed. */
  get isEmpty(): boolean {
    return this.#held.length === 0;
  }

  /** Reads up to `max` bytes; null at the end of the connection. */
  async some(max: number): Promise<Uint8Array<ArrayBuffer> | null> {
    if (this.#held.length === 0 && !(await this.#more())) return null;
    const bytes = this.#held.subarray(0, max);
    this.#held = this.#held.subarray(bytes.length);
    return bytes;
  }

  /** Reads the next line without its line break, one character per byte. */
  async line(): Promise<string> {
    for (let searched = 0;;) {
      const end = this.#held.indexOf(10, searched);
      if (end >= 0) {
        const line = this.#held.subarray(0, end > 0 && this.#held[end - 1] === 13 ? end - 1 : end);
        this.#held = this.#held.subarray(end + 1);
        return Buffer.from(line.buffer, line.byteOffset, line.length).toString("latin1");
      }
      searched = this.#held.length;
      if (searched > MAX_HEAD_BYTES) throw new BadResponse("the answer has a line without end");
      if (!(await this.#more())) throw new BadResponse("the connection ended before the answer did");
    }
  }

  async #more(): Promise<boolean> {
    // An answer that has already arrived would otherwise keep the thread busy until its end.
    if (this.#nextBytes === READ_BYTES) await setImmediate();
    const buffer = new Uint8Array(this.#nextBytes);
    this.#nextBytes = READ_BYTES;
    const read = await this.#connection.read(buffer);
    if (read === null) return false;
    this.#held = this.#held.length === 0
      ? buffer.subarray(0, read)
      : Buffer.concat([this.#held, buffer.subarray(0, read)]);
    return true;
  }
}
