/**
 * Reads `multipart/form-data` with one file, which is written to disk as it arrives. Fields may precede or follow it.
 * What a part codes, in its names or as a whole, is decoded; what cannot be is refused, so that nobody receives codes.
 */
import { Buffer } from "node:buffer";
import { invalid, type Problem } from "../../errors.ts";
import { percentDecoded } from "../../base/addresses.ts";
import { essence, UNKNOWN_TYPE } from "../../base/file_types.ts";
import { GatheredBytes } from "../../base/gathered_bytes.ts";
import { decodedParameter, inCharset, parametersOf, Undecodable } from "../../base/header_parameters.ts";
import type { StoredFile } from "../../media/store.ts";
import { Base64Decoder } from "./base64.ts";
import { badBody, chunksOf } from "./body.ts";
import type { Upload, UploadOptions } from "./json_upload.ts";
import { QuotedPrintableDecoder } from "./quoted_printable.ts";
import { isKeyOf } from "../../base/typed_keys.ts";
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
  /** The name that the client gave; empty if none. */
  filename: string;
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
  let mimetype: string | null = null;
  try {
    for await (const { name, filename: givenName, type, encoding, content: received } of partsOf(request)) {
      if (name === undefined) continue;
      const content = decoded(received, { name, encoding });
      if (givenName === undefined) {
        const value = textOf(await whole(content, { path: name, maxBytes: MAX_FIELD_BYTES }), { name, type });
        // Forms also send fields that were left empty.
        if (value === "") fields.set(name, fields.get(name));
        else if (fields.get(name) !== undefined) throw invalid(name, "is given twice");
        else fields.set(name, value);
        if (fields.size > MAX_FIELDS) throw invalid("body", `has more than ${MAX_FIELDS} fields`);
      } else {
        if (name !== part) throw invalid(name, `is a file; the part of the file is named "${part}"`);
        if (file) throw invalid(name, "is given twice");
        filename = givenName;
        mimetype = type || null;
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
  /** Its Content-Type; empty if it has none. */
  type: string;
  /** Its Content-Transfer-Encoding in lower case; empty if it has none. */
  encoding: string;
  /** Must be read before the next part. */
  content: AsyncGenerator<Uint8Array>;
}

const BLANK_LINE = Buffer.from("\r\n\r\n");

/**
 * Yields the form's parts. Throws Problem validation_failed if it is not a form or incomplete. Ignores text after its
 * end.
 */
async function* partsOf(request: Request): AsyncGenerator<Part> {
  const boundary = parametersOf(request.headers.get("content-type") ?? "").get("boundary") ?? "";
  if (boundary === "" || boundary.length > MAX_BOUNDARY) throw notForm();
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  const form = new Chunks(chunksOf(request));
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

/** A stream of bytes in chunks of any size, to be searched for delimiters. */
class Chunks {
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
  chunks: AsyncIterable<Uint8Array>,
  { path, maxBytes }: { path: string; maxBytes: number },
): Promise<Buffer> {
  const read = new GatheredBytes();
  for await (const chunk of chunks) {
    if (read.size + chunk.length > maxBytes) throw invalid(path, `has more than ${maxBytes} bytes`);
    read.add(chunk);
  }
  return Buffer.from(read.all.buffer, 0, read.size);
}

async function drop(chunks: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of chunks);
}

function headersOf(head: Buffer): Omit<Part, "content"> {
  const lines = head.toString("latin1").replaceAll(/\r\n[ \t]+/g, " ").split("\r\n");
  const header = (name: string) => {
    const line = lines.find((line) => line.toLowerCase().startsWith(`${name}:`));
    return Buffer.from(line?.slice(name.length + 1).trim() ?? "", "latin1");
  };
  const type = header("content-type").toString("latin1");
  const disposition = header("content-disposition");
  const [name, filename] = namesIn(disposition);
  return {
    name,
    filename: filename === undefined ? (essence(type) === UNKNOWN_TYPE ? "" : undefined) : bareName(filename),
    type,
    encoding: header("content-transfer-encoding").toString("latin1").toLowerCase(),
  };
}

/** Returns the names of a part and of its file. Throws Problem validation_failed if one cannot be decoded. */
function namesIn(disposition: Buffer): [name: string | undefined, filename: string | undefined] {
  let name = parametersOf(disposition.toString("latin1")).get("name");
  try {
    const parameters = parametersOf(inCharset(disposition, "utf-8"));
    name = decodedParameter(parameters, "name");
    return [name, decodedParameter(parameters, "filename")];
  } catch (error) {
    if (!(error instanceof Undecodable)) throw error;
    throw invalid(name ?? "body", `has a name that ${error.message}`);
  }
}

/**
 * Returns the name without its folder, and with `"`, CR and LF unescaped: the only characters that browsers, Node.js
 * and curl escape, as WHATWG's form encoding specifies. aiohttp escapes every character but those of a URL.
 */
function bareName(filename: string): string {
  const name = filename.replace(/^.*[/\\]/s, "");
  const isEscaped = /^([\w.~-]|%[0-9A-F]{2})+$/.test(name) && /%(20|[89A-F])/.test(name);
  return isEscaped ? percentDecoded(name) : name.replace(/%(22|0D|0A)/gi, decodeURIComponent);
}

/** Decodes a part that is coded as in a mail (RFC 2045, section 6). Throws Problem validation_failed. */
async function* decoded(
  content: AsyncGenerator<Uint8Array>,
  { name, encoding }: { name: string; encoding: string },
): AsyncGenerator<Uint8Array> {
  if (["", "7bit", "8bit", "binary"].includes(encoding)) return yield* content;
  if (!isKeyOf(DECODERS, encoding)) throw invalid(name, `has an unknown Content-Transfer-Encoding, "${encoding}"`);
  const decoder = new DECODERS[encoding](name);
  for await (const chunk of content) yield decoder.push(chunk);
  yield decoder.end();
}

const DECODERS = { base64: Base64Decoder, "quoted-printable": QuotedPrintableDecoder };

function textOf(bytes: Uint8Array, { name, type }: { name: string; type: string }): string {
  try {
    return inCharset(bytes, parametersOf(type).get("charset") ?? "utf-8");
  } catch (error) {
    if (!(error instanceof Undecodable)) throw error;
    throw invalid(name, error.message);
  }
}

function notForm(): Problem {
  return badBody("is not complete multipart/form-data");
}
