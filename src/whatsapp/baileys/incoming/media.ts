/** The file of an incoming message in the port's form. */
import { statusOf } from "../answer.ts";
import type { WAMessage, WASocket } from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import { type IncomingMedia, MediaTrouble, MediaUnavailable } from "../../incoming.ts";
import type { MediaContent, MediaKind } from "./content.ts";
import { within } from "../../../base/within.ts";
import { downloadMedia, MediaGone } from "./media_download.ts";
import type { MediaHost } from "../media_host.ts";

/** Time for a new upload; the sender's phone has to be online. */
const REUPLOAD_MS = 30_000;
/** The library's codes for the phone's answer: it lacks the file, cannot read the request, or failed. */
const PHONE_REFUSES = new Set([404, 412, 418]);
/** The MIME type of each kind if the sender gives none. */
const MIMETYPES: Readonly<Record<MediaKind, string>> = {
  image: "image/jpeg",
  video: "video/mp4",
  audio: "audio/ogg; codecs=opus",
  document: "application/octet-stream",
  sticker: "image/webp",
};

interface MediaSource {
  host: MediaHost;
  runtime: Pick<Runtime, "clock">;
  /** The open socket. Null if there is none: then no phone can be asked for a new upload yet. */
  socket: () => Pick<WASocket, "updateMediaMessage"> | null;
}

export function incomingMedia(
  source: MediaSource,
  message: WAMessage,
  { kind, file }: { kind: MediaKind; file: MediaContent },
): IncomingMedia {
  const { host, runtime, socket } = source;

  /** Asks for a new upload. The library writes the new location into the file's fields. */
  async function askAgain(gone: MediaGone): Promise<void> {
    const open = socket();
    if (!open) {
      throw new MediaTrouble("the sender's phone could not be asked to upload the file again", { cause: gone });
    }
    // The library recognises fewer envelopes and kinds than this adapter, so it gets the bare content with the same
    // file object.
    const bare = { key: message.key, message: { [`${kind}Message`]: file } };
    const answer = await within(runtime.clock, REUPLOAD_MS, open.updateMediaMessage(bare)).catch((cause) => {
      if (PHONE_REFUSES.has(statusOf(cause) ?? 0)) {
        throw new MediaUnavailable("the sender's phone does not have the file any more", { cause });
      }
      throw new MediaTrouble("the sender's phone could not be asked to upload the file again", { cause });
    });
    if (answer === "late") throw new MediaUnavailable("the sender's phone did not upload the file again");
  }

  return {
    mimetype: file.mimetype || MIMETYPES[kind],
    filename: kind === "document" ? file.fileName || null : null,
    size: file.fileLength == null ? null : Number(file.fileLength),
    async download(signal) {
      try {
        return await downloadMedia(host, { kind, file }, signal);
      } catch (error) {
        if (!(error instanceof MediaGone)) throw error;
        await askAgain(error);
        return await downloadMedia(host, { kind, file }, signal);
      }
    },
  };
}
