/** Voice notes: Opus in Ogg alone, which is what phones record and play as one. */
import { Buffer } from "node:buffer";
import { file, type FileContent } from "./file.ts";
import type { Kind } from "./kind.ts";

export const voice: Kind<FileContent> = {
  ...file,
  refusal(head) {
    const data = Buffer.from(head);
    if (data.toString("latin1", 0, 4) !== "OggS") return "must be Opus in an Ogg file; other audio is not converted";
    // The identification header is alone on the first page (RFC 7845).
    return data.includes("OpusHead") ? null : "is an Ogg file without Opus; other audio is not converted";
  },
  withAttachment: (content, { file }) => ({ ...content, file }),
};
