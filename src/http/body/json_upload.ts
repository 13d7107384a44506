/**
 * Reads a JSON object with one member that is a file in base64, and decodes that member to disk as it arrives. Memory
 * holds only a few chunks of the file, whatever its size. The rest of the object is small and parsed as any other body.
 */
import type { z } from "@hono/zod-openapi";
import { Buffer } from "node:buffer";
import { invalid } from "../../errors.ts";
import type { SharedMediaStore } from "../../media/fair_shares.ts";
import type { StoredFile } from "../../media/store.ts";
import { chunksOf, parseJson } from "./body.ts";
import { JsonScanner } from "./json_scanner.ts";
import { validate } from "../../base/validation.ts";

/** The validated fields, and the file; null only if the schema does not require it. */
export interface Upload<Fields> {
  fields: Fields;
  file: StoredFile | null;
}

export interface UploadOptions<Fields> {
  /** Name of the member or part with the file; for the schema its value is an empty string. */
  part: string;
  schema: z.ZodType<Fields>;
  media: Pick<SharedMediaStore, "write" | "remove">;
  /** The account that owns the file. */
  accountId: string;
  /** Limit for the file itself. */
  maxBytes: number;
}

/**
 * Reads the body. Throws Problem malformed_json, validation_failed, payload_too_large, and then leaves no file.
 * Otherwise the caller owns the file, and must assign it to a message or remove it.
 */
export async function readJsonUpload<Fields>(
  request: Request,
  { part, schema, media, accountId, maxBytes }: UploadOptions<Fields>,
): Promise<Upload<Fields>> {
  const scanner = new JsonScanner(chunksOf(request), part);
  let file: StoredFile | null = null;
  try {
    while (await scanner.findMember()) {
      if (file) throw invalid(part, "is given twice");
      file = await media.write(decoded(scanner, part), { accountId, maxBytes });
      if (file.size === 0) throw invalid(part, "is empty");
    }
    return { fields: validate(schema, parseJson(scanner.rest())), file };
  } catch (error) {
    await scanner.end();
    if (file) await media.remove(file.fileId);
    throw error;
  }
}

function decoded(scanner: JsonScanner, path: string): ReadableStream<Uint8Array> {
  const decoder = new Base64Decoder(path);
  return new ReadableStream({
    async pull(controller) {
      const text = await scanner.readString();
      const bytes = text === null ? decoder.end() : decoder.push(text);
      if (bytes.length > 0) controller.enqueue(bytes);
      if (text === null) controller.close();
      // The stream does not pull again by itself if nothing was enqueued.
      else if (bytes.length === 0) await this.pull!(controller);
    },
  }, { highWaterMark: 0 });
}

/** Most characters of a prefix: `data:` and a media type with parameters. */
const MAX_PREFIX = 256;

const BLANKS = /[\t\n\r ]+/g;

/**
 * Decodes base64 (RFC 4648, section 4) that arrives in pieces, with or without a `data:` prefix; refuses anything else.
 */
export class Base64Decoder {
  readonly #path: string;
  /** True while the text so far may still be a prefix. */
  #atStart = true;
  /** Text that is not decoded yet: an incomplete group of four characters, or a possible prefix. */
  #waiting = "";
  #padded = false;

  /** `path` is the field that errors name. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the bytes that are complete so far. Throws Problem validation_failed. */
  push(text: Uint8Array): Uint8Array<ArrayBuffer> {
    this.#waiting += Buffer.from(text.buffer, text.byteOffset, text.length).toString("latin1");
    if (this.#atStart && !this.#skipPrefix()) return new Uint8Array();
    return this.#decode("stop-before-partial");
  }

  /** Returns the last bytes; padding is optional. Throws Problem validation_failed. */
  end(): Uint8Array<ArrayBuffer> {
    return this.#decode("loose");
  }

  /** Removes a prefix; returns false while more text is needed to decide. */
  #skipPrefix(): boolean {
    const start = this.#waiting = this.#waiting.replace(BLANKS, "");
    if ("data:".startsWith(start.slice(0, 5).toLowerCase())) {
      const comma = start.indexOf(",");
      if (comma < 0 && start.length < MAX_PREFIX) return false;
      if (comma < 0 || !/;base64$/i.test(start.slice(0, comma))) {
        throw invalid(this.#path, "has a data: prefix that does not end with ;base64,");
      }
      this.#waiting = start.slice(comma + 1);
    }
    this.#atStart = false;
    return true;
  }

  #decode(lastChunkHandling: "stop-before-partial" | "loose"): Uint8Array<ArrayBuffer> {
    const text = this.#waiting;
    if (this.#padded && text.replace(BLANKS, "") !== "") throw invalid(this.#path, "is padded in the wrong place");
    const bytes = new Uint8Array(Math.ceil(text.length * 3 / 4));
    try {
      const { read, written } = bytes.setFromBase64(text, { lastChunkHandling });
      this.#padded ||= text.lastIndexOf("=", read - 1) >= 0;
      // Without blanks, which could be millions, because it is decoded again with the next piece.
      this.#waiting = text.slice(read).replace(BLANKS, "");
      return bytes.subarray(0, written);
    } catch {
      throw invalid(this.#path, whatIsWrong(text));
    }
  }
}

function whatIsWrong(text: string): string {
  if (/[^A-Za-z0-9+/=\t\n\r ]/.test(text)) return "has characters that are not base64";
  return text.includes("=") ? "is padded in the wrong place" : "is cut off";
}
