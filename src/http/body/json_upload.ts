/**
 * Reads a JSON object with one member that is a file in base64, and decodes that member to disk as it arrives. Memory
 * holds only a few chunks of the file, whatever its size. The rest of the object is small and parsed as any other body.
 */
import type { z } from "@hono/zod-openapi";
import { invalid } from "../../errors.ts";
import type { SharedMediaStore } from "../../media/fair_shares.ts";
import type { StoredFile } from "../../media/store.ts";
import { Base64Decoder } from "./base64.ts";
import { chunksOf, parseJson } from "./body.ts";
import { JsonScanner } from "./json_scanner.ts";
import { validate } from "../../base/validation.ts";

/** The validated fields, and the file; null only if the schema does not require it. */
export interface Upload<Fields> {
  fields: Fields;
  file: StoredFile | null;
  /** The type that the client states: in the prefix of its base64, or in the head of the form's part. */
  mimetype: string | null;
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
  const decoder = new Base64Decoder(part);
  let file: StoredFile | null = null;
  try {
    while (await scanner.findMember()) {
      if (file) throw invalid(part, "is given twice");
      file = await media.write(ReadableStream.from(decoded(scanner, decoder)), { accountId, maxBytes });
      if (file.size === 0) throw invalid(part, "is empty");
    }
    return { fields: validate(schema, parseJson(scanner.rest())), file, mimetype: decoder.mimetype };
  } catch (error) {
    await scanner.end();
    if (file) await media.remove(file.fileId);
    throw error;
  }
}

async function* decoded(scanner: JsonScanner, decoder: Base64Decoder): AsyncGenerator<Uint8Array> {
  for (let text = await scanner.readString(); text !== null; text = await scanner.readString()) {
    yield decoder.push(text);
  }
  yield decoder.end();
}
