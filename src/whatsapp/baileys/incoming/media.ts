/**
 * The file of an incoming message: downloaded, decrypted and verified as it streams, and uploaded again by the sender's
 * phone if the network has deleted it. The library's own download checks neither the MAC nor the hashes, so a host
 * could alter a file unnoticed.
 */
import { Buffer } from "node:buffer";
import { createDecipheriv, createHash, createHmac, timingSafeEqual } from "node:crypto";
import { getMediaKeys, type MediaDecryptionKeyInfo, type WAMessage, type WASocket } from "@whiskeysockets/baileys";
import { statusOf } from "../stanza.ts";
import { extensionFor, extensionIn, typeOfExtension } from "../../../base/file_types.ts";
import type { Runtime } from "../../../runtime.ts";
import { type IncomingMedia, MediaTrouble, MediaUnavailable } from "../../incoming.ts";
import type { MediaContent, MediaKind } from "./content.ts";
import { within } from "../../../base/within.ts";
import type { MediaAnswer, MediaHost } from "../media_host.ts";

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
    filename: kind === "document" ? file.fileName || titleOf(file) : null,
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

/** Returns the title of a document that has no name, with the extension of its type unless it has one. */
function titleOf({ title, mimetype }: MediaContent): string | null {
  if (!title) return null;
  const extension = extensionFor(mimetype ?? "");
  return extension === null || typeOfExtension(extensionIn(title)) !== null ? title : `${title}.${extension}`;
}

/** The ciphertext is followed by this many bytes of its HMAC. */
export const MAC_BYTES = 10;
/** Statuses for a file that no longer exists, as opposed to a host in trouble. */
const GONE = new Set([403, 404, 410]);
/** Statuses below 500 that allow a retry. */
const LATER = new Set([408, 425, 429]);
const AES_BLOCK_BYTES = 16;

/** The network has deleted the file. The sender's phone may upload it again. */
class MediaGone extends MediaUnavailable {
  override name = "MediaGone";
}

/**
 * Opens the download. Throws MediaTrouble for failures that may pass: the host is unreachable, asks for a retry or
 * fails, or the stream ends too early. Throws MediaGone or MediaUnavailable for permanent ones, including a complete
 * file that does not verify. The stream errors in the same way.
 */
export async function downloadMedia(
  host: MediaHost,
  media: { kind: MediaKind | "md-msg-hist" | "md-app-state"; file: MediaContent },
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const { kind, file } = media;
  const url = host.addressOf(file);
  if (!url || !file.mediaKey?.length) throw new MediaUnavailable("the message does not say where its file lies");
  const keys = await getMediaKeys(file.mediaKey, kind);
  const answer = await host.get(url, signal).catch((cause) => {
    throw new MediaTrouble("the media host could not be reached", { cause });
  });
  const { status } = answer;
  if (status !== 200) {
    await answer.body.cancel();
    if (GONE.has(status)) throw new MediaGone("the network does not have the file any more");
    const Refusal = status >= 500 || LATER.has(status) ? MediaTrouble : MediaUnavailable;
    throw new Refusal(`the media host answered ${status}`);
  }
  return ReadableStream.from(verified(answer, keys, file));
}

/** Decrypts. Throws at the end if the file is truncated, or if the MAC or a hash does not match. */
async function* verified(
  encrypted: MediaAnswer,
  { iv, cipherKey, macKey }: MediaDecryptionKeyInfo,
  file: MediaContent,
): AsyncGenerator<Uint8Array> {
  const decipher = createDecipheriv("aes-256-cbc", cipherKey, iv);
  const mac = createHmac("sha256", macKey!).update(iv);
  const encryptedHash = createHash("sha256");
  const plainHash = createHash("sha256");
  /** The last bytes received so far, which may be the MAC. */
  let tail: Uint8Array = new Uint8Array(0);
  let received = 0;

  const take = function* (plain: Uint8Array) {
    if (plain.length === 0) return;
    plainHash.update(plain);
    yield new Uint8Array(plain);
  };
  try {
    for await (const chunk of encrypted.body) {
      received += chunk.length;
      encryptedHash.update(chunk);
      const bytes = Buffer.concat([tail, chunk]);
      const body = bytes.subarray(0, Math.max(0, bytes.length - MAC_BYTES));
      tail = bytes.subarray(body.length);
      mac.update(body);
      yield* take(decipher.update(body));
    }
  } catch (cause) {
    throw new MediaTrouble("the download was interrupted", { cause });
  }
  try {
    yield* take(decipher.final());
    check("MAC", mac.digest().subarray(0, MAC_BYTES), tail);
    check("hash of the encrypted file", encryptedHash.digest(), file.fileEncSha256);
    check("hash of the file", plainHash.digest(), file.fileSha256);
  } catch (cause) {
    // The sender may state a wrong length, so it is considered only for a file that does not verify.
    if (received < wholeLength(encrypted, file)) throw new MediaTrouble("the download ended too early", { cause });
    if (cause instanceof MediaUnavailable) throw cause;
    throw new MediaUnavailable("the file does not decrypt", { cause });
  }
}

/**
 * The length of the encrypted file as stated by the host or implied by the sender, whichever is greater; 0 if neither
 * is known.
 */
function wholeLength({ length }: MediaAnswer, { fileLength }: MediaContent): number {
  const stated = length ?? 0;
  if (fileLength == null) return stated;
  const blocks = Math.floor(Number(fileLength) / AES_BLOCK_BYTES) + 1;
  return Math.max(stated, blocks * AES_BLOCK_BYTES + MAC_BYTES);
}

function check(what: string, actual: Uint8Array, expected: Uint8Array | null | undefined): void {
  if (!expected?.length) return;
  if (actual.length === expected.length && timingSafeEqual(actual, expected)) return;
  throw new MediaUnavailable(`the file was altered: its ${what} does not match`);
}
