/** The file of an incoming message, as the port shows it. */
import { statusOf } from "../answer.ts";
import type { WAMessage, WASocket } from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import { type IncomingMedia, MediaTrouble, MediaUnavailable } from "../../incoming.ts";
import type { MediaContent, MediaKind } from "./content.ts";
import { within } from "../../../base/within.ts";
import { downloadMedia, MediaGone } from "./media_download.ts";
import type { MediaHost } from "../media_host.ts";

/** The sender's phone has to be online to upload again. */
const REUPLOAD_MS = 30_000;
/** The library's codes for what the phone answers: it does not have the file, cannot read the request, or failed. */
const PHONE_REFUSES = new Set([404, 412, 418]);
/** What a kind is when the sender does not say. */
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
  /** The open socket, or null: then nobody can be asked to upload again yet. */
  socket: () => Pick<WASocket, "updateMediaMessage"> | null;
}

export function incomingMedia(
  source: MediaSource,
  message: WAMessage,
  { kind, file }: { kind: MediaKind; file: MediaContent },
): IncomingMedia {
  const { host, runtime, socket } = source;

  /** Asks for a new upload; the library writes its place into the message. */
  async function askAgain(gone: MediaGone): Promise<void> {
    const open = socket();
    if (!open) throw new MediaTrouble("nobody could be asked to upload the file again", { cause: gone });
    // The library finds the file in fewer envelopes and kinds than we do: it gets the bare content, with the same file.
    const bare = { key: message.key, message: { [`${kind}Message`]: file } };
    const answer = await within(runtime.clock, REUPLOAD_MS, open.updateMediaMessage(bare)).catch((cause) => {
      if (PHONE_REFUSES.has(statusOf(cause) ?? 0)) {
        throw new MediaUnavailable("the sender's phone does not have the file any more", { cause });
      }
      throw new MediaTrouble("nobody could be asked to upload the file again", { cause });
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
