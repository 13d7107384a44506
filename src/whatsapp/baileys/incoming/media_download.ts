/**
 * Downloads a received file, decrypting and verifying it as it streams. The library's own download checks neither the
 * MAC nor the hashes, so a host could alter a file unnoticed.
 */
import { Buffer } from "node:buffer";
import { createDecipheriv, createHash, createHmac, timingSafeEqual } from "node:crypto";
import { getMediaKeys, type MediaDecryptionKeyInfo } from "@whiskeysockets/baileys";
import { MediaTrouble, MediaUnavailable } from "../../incoming.ts";
import type { MediaContent, MediaKind } from "./content.ts";
import type { MediaAnswer, MediaHost } from "../media_host.ts";

/** The ciphertext is followed by this many bytes of its HMAC. */
export const MAC_BYTES = 10;
/** Statuses for a file that no longer exists, as opposed to a host in trouble. */
const GONE = new Set([403, 404, 410]);
/** Statuses below 500 that allow a retry. */
const LATER = new Set([408, 425, 429]);
const AES_BLOCK_BYTES = 16;

/** The network has deleted the file. The sender's phone may upload it again. */
export class MediaGone extends MediaUnavailable {
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
