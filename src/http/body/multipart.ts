/**
 * Reads `multipart/form-data` with one file, which is written to disk as it arrives. Fields may precede or follow it.
 */
import { Buffer } from "node:buffer";
import { invalid, Problem } from "../../errors.ts";
import { percentDecoded } from "../../base/addresses.ts";
import { GatheredBytes } from "../../base/gathered_bytes.ts";
import type { StoredFile } from "../../media/store.ts";
import { chunksOf } from "./body.ts";
import type { Upload, UploadOptions } from "./json_upload.ts";
import { validate } from "../../base/validation.ts";

const MAX_FIELDS = 20;
/** Includes parts without a name, which are ignored but cost as much as fields. */
const MAX_PARTS = 2 * MAX_FIELDS;
/** Enough for a caption of 65,536 characters in UTF-8. */
const MAX_FIELD_BYTES = 256 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
/** RFC 2046, section 5.1.1. */
const MAX_BOUNDARY = 70;

interface FormUpload<Fields> extends Upload<Fields> {
  file: StoredFile;
  /** The name and the type that the client gave; empty if none. */
  filename: string;
  mimetype: string;
}

/**
 * Reads the body. Throws Problem validation_failed, payload_too_large, and then leaves no file. Otherwise the caller
 * owns the file, and must assign it to a message or remove it.
 */
export async function readFormUpload<Fields>(
  request: Request,
  { part, schema, media, accountId, maxBytes }: UploadOptions<Fields>,
): Promise<FormUpload<Fields>> {
  const fields = new Map<string, string | undefined>();
  let file: StoredFile | null = null;
  let filename = "";
  let mimetype = "";
  try {
    for await (const { name, filename: givenName, type, charset, content } of partsOf(request)) {
      if (name === undefined) continue;
      if (givenName === undefined) {
        const value = decoded(await whole(content, { path: name, maxBytes: MAX_FIELD_BYTES }), name, charset);
        // Forms also send fields that were left empty.
        if (value === "") fields.set(name, fields.get(name));
        else if (fields.get(name) !== undefined) throw invalid(name, "is given twice");
        else fields.set(name, value);
        if (fields.size > MAX_FIELDS) throw invalid("body", `has more than ${MAX_FIELDS} fields`);
      } else {
        if (name !== part) throw invalid(name, `is a file; the part of the file is named "${part}"`);
        if (file) throw invalid(name, "is given twice");
        filename = givenName;
        mimetype = type;
        file = await media.write(ReadableStream.from(content), { accountId, maxBytes });
      }
    }
    if (!file) throw invalid(part, "is required as a part with a file name");
    if (file.size === 0) throw invalid(part, "is empty");
    return { fields: validate(schema, { ...Object.fromEntries(fields), [part]: "" }), file, filename, mimetype };
  } catch (error) {
    if (file) await media.remove(file.fileId);
    throw error;
  }
}

interface Part {
  name: string | undefined;
  /** Undefined: the part is a field, not a file. */
  filename: string | undefined;
  type: string;
  charset: string | undefined;
  /** Must be read before the next part. */
  content: AsyncGenerator<Uint8Array>;
}

const BLANK_LINE = Buffer.from("\r\n\r\n");

/**
 * Yields the form's parts. Throws Problem validation_failed if it is not a form or incomplete. Ignores text after its
 * end.
 */
async function* partsOf(request: Request): AsyncGenerator<Part> {
  const boundary = parameters(request.headers.get("content-type") ?? "").get("boundary") ?? "";
  if (boundary === "" || boundary.length > MAX_BOUNDARY) throw notForm();
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  const form = new Pieces(chunksOf(request));
  try {
    await drop(form.until(delimiter));
    for (let count = 0; !await form.goesOn("--"); count++) {
      if (count === MAX_PARTS) throw invalid("body", `has more than ${MAX_PARTS} parts`);
      // The head begins with the rest of the boundary's line: optional blanks and a line break.
      const head = await whole(form.until(BLANK_LINE), { path: "body", maxBytes: MAX_HEADER_BYTES });
      const content = form.until(delimiter);
      yield { ...headersOf(head), content };
      await drop(content);
    }
  } finally {
    await form.end();
  }
}

/** A stream of bytes in pieces of any size, to be searched for delimiters. */
class Pieces {
  readonly #source: AsyncGenerator<Uint8Array>;
  /** Bytes received but not consumed. Begins with a line break, because the first boundary may have none before it. */
  #held = Buffer.from("\r\n");

  constructor(source: AsyncGenerator<Uint8Array>) {
    this.#source = source;
  }

  /** Yields the bytes before `sought`, which is consumed as well. */
  async *until(sought: Uint8Array): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = indexOf(this.#held, sought);
      // The last bytes held may be the beginning of `sought`.
      const sure = at >= 0 ? at : this.#held.length - sought.length + 1;
      const before = this.#held.subarray(0, Math.max(0, sure));
      this.#held = this.#held.subarray(before.length + (at >= 0 ? sought.length : 0));
      if (before.length > 0) yield before;
      if (at >= 0) return;
      await this.#more();
    }
  }

  /** Resolves to whether `text` comes next, and if so consumes it. */
  async goesOn(text: string): Promise<boolean> {
    while (this.#held.length < text.length) await this.#more();
    if (this.#held.toString("latin1", 0, text.length) !== text) return false;
    this.#held = this.#held.subarray(text.length);
    return true;
  }

  async end(): Promise<void> {
    await this.#source.return(undefined);
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#source.next();
    if (done) throw notForm();
    this.#held = Buffer.concat([this.#held, value]);
  }
}

/**
 * Finds `sought` by Horspool's algorithm, because Deno's own search takes twenty times as long: a byte that does not
 * occur in `sought` lets it skip `sought.length` bytes. It compares from the front: a delimiter begins with its only
 * carriage return, so that no content can make comparisons long.
 */
function indexOf(bytes: Uint8Array, sought: Uint8Array): number {
  const last = sought.length - 1;
  const skips = new Uint16Array(256).fill(sought.length);
  for (let i = 0; i < last; i++) skips[sought[i]!] = last - i;
  for (let at = 0; at + last < bytes.length; at += skips[bytes[at + last]!]!) {
    let i = 0;
    while (i <= last && bytes[at + i] === sought[i]) i++;
    if (i > last) return at;
  }
  return -1;
}

/** Resolves to all bytes. Throws Problem validation_failed for `path` if there are more than `maxBytes`. */
async function whole(
  pieces: AsyncIterable<Uint8Array>,
  { path, maxBytes }: { path: string; maxBytes: number },
): Promise<Buffer> {
  const read = new GatheredBytes();
  for await (const piece of pieces) {
    if (read.size + piece.length > maxBytes) throw invalid(path, `has more than ${maxBytes} bytes`);
    read.add(piece);
  }
  return Buffer.from(read.all.buffer, 0, read.size);
}

async function drop(pieces: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of pieces);
}

function headersOf(head: Buffer): Omit<Part, "content"> {
  const lines = head.toString().replaceAll(/\r\n[ \t]+/g, " ").split("\r\n");
  const header = (name: string) => lines.find((line) => line.toLowerCase().startsWith(`${name}:`)) ?? "";
  const disposition = parameters(header("content-disposition"));
  const type = header("content-type");
  const isBytes = /:\s*application\/octet-stream\s*(;|$)/i.test(type);
  const inUtf8 = /^utf-8'[^']*'(.*)$/i.exec(disposition.get("filename*") ?? "")?.[1];
  const filename = inUtf8 === undefined ? disposition.get("filename") : percentDecoded(inUtf8);
  return {
    name: disposition.get("name"),
    filename: unescaped(filename) ?? (isBytes ? "" : undefined),
    type: type.replace(/^[^:]*:/, "").trim(),
    charset: parameters(type).get("charset"),
  };
}

/** Returns the parameters of a header's value; if a name occurs twice, the first. */
function parameters(value: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, name, quoted, bare] of value.matchAll(/;\s*([^\s=;"]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s;]*))/g)) {
    const key = name!.toLowerCase();
    // Older browsers write a path with unescaped backslashes, which must stay.
    if (!found.has(key)) found.set(key, quoted?.replaceAll(/\\(["\\])/g, "$1") ?? bare!);
  }
  return found;
}

/**
 * Returns the name without its folder, and with `"`, CR and LF unescaped: the only characters that browsers, Node.js
 * and curl escape, as WHATWG's form encoding specifies.
 */
function unescaped(filename: string | undefined): string | undefined {
  return filename?.replace(/^.*[/\\]/s, "").replace(/%(22|0D|0A)/gi, decodeURIComponent);
}

function decoded(bytes: Uint8Array, name: string, charset = "utf-8"): string {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    throw invalid(name, `is not text in ${charset}`);
  }
}

function notForm(): Problem {
  const message = "is not complete multipart/form-data";
  return new Problem("validation_failed", `The body ${message}.`, { errors: [{ path: "body", message }] });
}
