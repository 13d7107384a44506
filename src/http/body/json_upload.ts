/**
 * Reads a JSON object of which one member is a file in base64, and decodes that member to disk as it arrives: whatever
 * the file's size, memory holds a few chunks of it. The rest of the object is small and is parsed as any other body.
 */
import type { z } from "@hono/zod-openapi";
import { Buffer } from "node:buffer";
import { invalid, type Problem } from "../../errors.ts";
import type { SharedMediaStore } from "../../media/fair_writes.ts";
import type { StoredFile } from "../../media/store.ts";
import { chunksOf, parseJson } from "./body.ts";
import { JsonScanner } from "./json_scanner.ts";
import { validate } from "../api/validation.ts";

/** What the schema made of the fields, and the file beside them. */
export interface Upload<Fields> {
  fields: Fields;
  file: StoredFile;
}

/** As `Upload`; without a file where the schema does not require it. */
export interface JsonUpload<Fields> {
  fields: Fields;
  file: StoredFile | null;
}

export interface UploadOptions<Fields> {
  /** Name of the member or part that is the file; the schema sees an empty string in its place. */
  part: string;
  schema: z.ZodType<Fields>;
  media: Pick<SharedMediaStore, "write" | "remove">;
  /** Whose file it is. */
  accountId: string;
  /** Of the file itself. */
  maxBytes: number;
}

/**
 * Throws Problem malformed_json, validation_failed, payload_too_large; no file is left then. Otherwise the file is the
 * caller's, who gives it to a message or removes it.
 */
export async function readJsonUpload<Fields>(
  request: Request,
  { part, schema, media, accountId, maxBytes }: UploadOptions<Fields>,
): Promise<JsonUpload<Fields>> {
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
      // A pull that gives nothing is not repeated by itself.
      else if (bytes.length === 0) await this.pull!(controller);
    },
  }, { highWaterMark: 0 });
}

/** `data:` and a media type with parameters; longer ones are no prefix. */
const MAX_PREFIX = 256;

const BLANKS = /[\t\n\r ]+/g;

/** Decodes base64 that comes in pieces, with or without a `data:` prefix, and refuses what is none (RFC 4648, section 4). */
export class Base64Decoder {
  readonly #path: string;
  /** What stands before the content may still be a prefix. */
  #atStart = true;
  /** What waits for the rest of its group of four. */
  #waiting = "";
  #padded = false;

  /** `path` is what errors name. */
  constructor(path: string) {
    this.#path = path;
  }

  /** The bytes that are complete so far. `text` is ASCII, or not base64. Throws Problem validation_failed. */
  push(text: Uint8Array): Uint8Array<ArrayBuffer> {
    this.#waiting += Buffer.from(text.buffer, text.byteOffset, text.length).toString("latin1");
    if (this.#atStart && !this.#skipPrefix()) return new Uint8Array();
    return this.#decode("stop-before-partial");
  }

  /** The last bytes; padding may be left out. Throws Problem validation_failed. */
  end(): Uint8Array<ArrayBuffer> {
    return this.#decode("loose");
  }

  /** False while more is needed to decide. */
  #skipPrefix(): boolean {
    const start = this.#waiting = this.#waiting.replace(BLANKS, "");
    if ("data:".startsWith(start.slice(0, 5).toLowerCase())) {
      const comma = start.indexOf(",");
      if (comma < 0 && start.length < MAX_PREFIX) return false;
      if (comma < 0 || !/;base64$/i.test(start.slice(0, comma))) {
        throw this.#wrong("has a data: prefix that does not end with ;base64,");
      }
      this.#waiting = start.slice(comma + 1);
    }
    this.#atStart = false;
    return true;
  }

  #decode(lastChunkHandling: "stop-before-partial" | "loose"): Uint8Array<ArrayBuffer> {
    const text = this.#waiting;
    if (this.#padded && text.replace(BLANKS, "") !== "") throw this.#wrong("is padded in the wrong place");
    const bytes = new Uint8Array(Math.ceil(text.length * 3 / 4));
    try {
      const { read, written } = bytes.setFromBase64(text, { lastChunkHandling });
      this.#padded ||= text.lastIndexOf("=", read - 1) >= 0;
      this.#waiting = text.slice(read);
      return bytes.subarray(0, written);
    } catch {
      throw this.#wrong(whatIsWrong(text));
    }
  }

  #wrong(message: string): Problem {
    return invalid(this.#path, message);
  }
}

function whatIsWrong(text: string): string {
  if (/[^A-Za-z0-9+/=\t\n\r ]/.test(text)) return "has characters that are not base64";
  return text.includes("=") ? "is padded in the wrong place" : "is cut off";
}
