/** What a receiver's phone shows of a file before it downloads it: an image's size and preview, seconds, pages. */
import { open, readFile } from "node:fs/promises";
import { getAudioDuration } from "@whiskeysockets/baileys";
import type { FileBody } from "../../connection.ts";
import { voiceFacts } from "./voice_facts.ts";
import { imageSize } from "./image_size.ts";
import { thumbnail } from "./thumbnail.ts";

/** Images up to this size are read whole, for a preview; of others only the beginning. */
const WHOLE_IMAGE_BYTES = 4 * 1024 * 1024;
const IMAGE_HEAD_BYTES = 256 * 1024;
/** Larger PDFs go without a page count. */
const PDF_BYTES = 8 * 1024 * 1024;

/** Fields for the message, as far as the file tells them. Throws only when the file can't be read. */
export async function fileFacts(body: FileBody): Promise<Record<string, unknown>> {
  switch (body.kind) {
    case "image":
      return await imageFacts(body);
    case "sticker":
      return { ...imageSize(await readHead(body.path, Math.min(body.size, IMAGE_HEAD_BYTES))) };
    case "voice":
      return await voiceFacts(await readFile(body.path));
    case "video":
    case "audio":
      return await lengthOf(body);
    case "document":
      return body.mimetype === "application/pdf" && body.size <= PDF_BYTES
        ? pageFacts(await readFile(body.path, "latin1"))
        : {};
  }
}

async function imageFacts({ path, size }: FileBody): Promise<Record<string, unknown>> {
  const bytes = await readHead(path, size <= WHOLE_IMAGE_BYTES ? size : IMAGE_HEAD_BYTES);
  const dimensions = imageSize(bytes);
  const jpegThumbnail = dimensions && thumbnail(bytes, dimensions);
  return { ...dimensions, ...(jpegThumbnail ? { jpegThumbnail } : {}) };
}

async function readHead(path: string, length: number): Promise<Uint8Array> {
  const file = await open(path, "r");
  try {
    const bytes = new Uint8Array(length);
    const { bytesRead } = await file.read(bytes, 0, length, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function lengthOf({ path }: FileBody): Promise<{ seconds?: number }> {
  const seconds = await getAudioDuration(path).catch(() => undefined);
  return seconds ? { seconds: Math.max(1, Math.round(seconds)) } : {};
}

/** The root of the page tree says how many pages there are, where it does not lie in a compressed stream. */
export function pageFacts(pdf: string): { pageCount?: number } {
  const counts = [...pdf.matchAll(/\/Type\s*\/Pages\b/g)].map(({ index }) => {
    const begin = pdf.lastIndexOf("obj", index);
    const end = pdf.indexOf("endobj", index);
    return Number(/\/Count\s+(\d+)/.exec(pdf.slice(Math.max(0, begin), end < 0 ? undefined : end))?.[1] ?? 0);
  });
  const pageCount = Math.max(0, ...counts);
  return pageCount > 0 ? { pageCount } : {};
}
