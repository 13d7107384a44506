/**
 * Reads a JSON object of which one member is a file in base64, and decodes that member to disk as it arrives: whatever
 * the file's size, memory holds a few chunks of it. The rest of the object is small and is parsed as any other body.
 */
import type { z } from "@hono/zod-openapi";
import { invalid } from "../../errors.ts";
import type { SharedMediaStore } from "../../media/turns.ts";
import type { StoredFile } from "../../message/kinds/kind.ts";
import { Base64Decoder } from "./base64.ts";
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
      const { id: fileId, size, sha256 } = await media.write(decoded(scanner, part), { accountId, maxBytes });
      file = { fileId, size, sha256 };
      if (size === 0) throw invalid(part, "is empty");
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
