/** What a receiver's phone shows of a file before it downloads it: size of an image, length of audio, pages. */
import type { OutgoingBody } from "../connection.ts";

type FileBody = Exclude<OutgoingBody, { kind: "text" }>;

/** Fields for the message, null where the file does not tell: with undefined the library would look by itself. */
export function describeFile(body: FileBody): Promise<Record<string, unknown>> {
  switch (body.kind) {
    case "image":
    case "video":
      return Promise.resolve({ jpegThumbnail: null });
    case "audio":
      return Promise.resolve({ seconds: null, waveform: null });
    case "document":
      return Promise.resolve({});
  }
}
