/** Stickers: WebP alone, which is what phones show. */
import { Buffer } from "node:buffer";
import { file, type FileContent } from "./file.ts";
import type { Kind } from "./kind.ts";

export const sticker: Kind<FileContent> = {
  ...file,
  refusal(head) {
    const data = Buffer.from(head);
    const isWebp = data.toString("latin1", 0, 4) === "RIFF" && data.toString("latin1", 8, 12) === "WEBP";
    return isWebp ? null : "must be a WebP image; PNG and JPEG are not converted";
  },
  withAttachment: (content, { file }) => ({ ...content, file }),
};
