/**
 * The files of messages. A phone encrypts and uploads a file when it sends, and downloads, verifies and decrypts it
 * when it receives. As in the apps: AES-256-CBC, a 10-byte HMAC, and SHA-256 over both the plain file and the upload.
 */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, createHash, createHmac } from "node:crypto";
import { unlessMalformed } from "../../base/retry.ts";
import type { Random, Runtime } from "../../runtime.ts";
import { hkdf } from "../world/crypto.ts";
import type { MediaAccess } from "../world/uplink.ts";

const MAC_BYTES = 10;
/** Timeout of a transfer; over loopback, a slower one has hung. */
const TRANSFER_TIMEOUT_MS = 60_000;
/** Downloaded files up to this size are kept in encrypted form, so that the phone can upload them again. */
const KEPT_FILE_BYTES = 16 * 1024 * 1024;

/** The kinds of files that a phone can send. */
export const FILE_KINDS = ["image", "video", "audio", "document", "sticker"] as const;
export type PhoneFileKind = (typeof FILE_KINDS)[number];

/** Purposes of an uploaded file: a kind of message, a link's preview, or what an account's other devices get. */
type SealedKind = PhoneFileKind | "linkPreview" | "history" | "settings";

/** Each kind's name in the key derivation, and its folder on the media host (protocol constants). */
const KINDS: Record<SealedKind, { info: string; folder: string }> = {
  image: { info: "WhatsApp Image Keys", folder: "image" },
  video: { info: "WhatsApp Video Keys", folder: "video" },
  audio: { info: "WhatsApp Audio Keys", folder: "audio" },
  document: { info: "WhatsApp Document Keys", folder: "document" },
  sticker: { info: "WhatsApp Image Keys", folder: "image" },
  linkPreview: { info: "WhatsApp Link Thumbnail Keys", folder: "image" },
  history: { info: "WhatsApp History Keys", folder: "md-msg-hist" },
  settings: { info: "WhatsApp App State Keys", folder: "md-app-state" },
};

/** A file on the media host, as a message refers to it. */
export interface Attachment {
  mediaKey: Uint8Array;
  fileSha256: Uint8Array;
  fileEncSha256: Uint8Array;
  fileLength: number;
  directPath: string;
  url: string;
}

/** What a message says of a file; no length for the picture of a link's preview. */
export type Stated = Omit<Attachment, "url" | "fileLength"> & { fileLength: number | null };

/** The dependencies of file transfers. */
export interface Transfers {
  readonly runtime: Runtime;
  /** The network's media host. */
  readonly media: MediaAccess;
}

/** An encrypted file, and what its path on the media host is made of. */
interface SealedFile {
  kind: SealedKind;
  body: Uint8Array;
  encSha256: Uint8Array;
}

/** The result of receiving a file. */
export interface OpenedFile {
  /** Hex. */
  sha256: string;
  size: number;
  /** The encrypted file; null if it is too large to keep. */
  sealed: SealedFile | null;
}

const NO_PLACE = "The message does not say where its file is";

/** The file cannot be downloaded, or differs from what the message states. The error's message is one sentence. */
export class AttachmentError extends Error {
  override name = "AttachmentError";
}

/** Encrypts a file and uploads it. Throws AttachmentError. */
export async function sendFile(
  content: Uint8Array,
  kind: SealedKind,
  { runtime, media }: Transfers,
): Promise<Attachment> {
  const { mediaKey, sealed } = seal(content, kind, runtime.random);
  const { url, directPath } = await upload(sealed, { runtime, media });
  return {
    mediaKey,
    fileSha256: createHash("sha256").update(content).digest(),
    fileEncSha256: sealed.encSha256,
    fileLength: content.length,
    directPath,
    url,
  };
}

function seal(content: Uint8Array, kind: SealedKind, random: Random): { mediaKey: Uint8Array; sealed: SealedFile } {
  const mediaKey = random.bytes(32);
  const { iv, cipherKey, macKey } = mediaKeys(mediaKey, kind);
  const cipher = createCipheriv("aes-256-cbc", cipherKey, iv);
  const encrypted = Buffer.concat([cipher.update(content), cipher.final()]);
  const mac = createHmac("sha256", macKey).update(iv).update(encrypted).digest().subarray(0, MAC_BYTES);
  const body = Buffer.concat([encrypted, mac]);
  return { mediaKey, sealed: { kind, body, encSha256: createHash("sha256").update(body).digest() } };
}

/** Uploads an encrypted file, for a new message or because a companion found it missing. Throws AttachmentError. */
export async function upload(
  { kind, body, encSha256 }: SealedFile,
  { runtime, media }: Transfers,
): Promise<{ url: string; directPath: string }> {
  const token = Buffer.from(encSha256).toString("base64url");
  const query = new URLSearchParams({ auth: media.auth, token });
  return await transfer(`/mms/${KINDS[kind].folder}/${token}?${query}`, {
    runtime,
    media,
    request: { method: "POST", body: Uint8Array.from(body), headers: { "content-type": "application/octet-stream" } },
  }, async (response) => {
    const { url, direct_path: directPath }: { url: string; direct_path: string } = await response.json();
    return { url, directPath };
  });
}

/**
 * Downloads and decrypts a file; verifies both hashes, the MAC and the length. Holds a file in memory only if it is
 * small enough to keep. Throws AttachmentError.
 */
export async function receiveFile(
  { attachment, kind }: { attachment: Stated | null; kind: SealedKind },
  { runtime, media }: Transfers,
): Promise<OpenedFile> {
  if (!attachment) throw new AttachmentError(NO_PLACE);
  return await transfer(attachment.directPath, { runtime, media }, async (response) => {
    if (!response.body) throw new AttachmentError("The file is empty");
    const { iv, cipherKey, macKey } = mediaKeys(attachment.mediaKey, kind);
    const decipher = createDecipheriv("aes-256-cbc", cipherKey, iv);
    const mac = createHmac("sha256", macKey).update(iv);
    const encHash = createHash("sha256");
    const plainHash = createHash("sha256");
    let size = 0;
    let tail = Buffer.alloc(0);
    const kept: Uint8Array[] = [];
    const stated = attachment.fileLength ?? 0;
    /** Starts above the limit if the message states a larger size, so that no part of such a file is kept. */
    let keptBytes = stated > KEPT_FILE_BYTES ? stated : 0;
    for await (const chunk of response.body) {
      encHash.update(chunk);
      keptBytes += chunk.length;
      if (keptBytes <= KEPT_FILE_BYTES) kept.push(chunk);
      else kept.length = 0;
      // The last bytes are the MAC, and which these are is known only at the end of the file.
      const ends = Buffer.concat([tail, chunk.subarray(-MAC_BYTES)]);
      tail = ends.subarray(-MAC_BYTES);
      for (const encrypted of [ends.subarray(0, -MAC_BYTES), chunk.subarray(0, -MAC_BYTES)]) {
        mac.update(encrypted);
        const plain = decipher.update(encrypted);
        plainHash.update(plain);
        size += plain.length;
      }
    }
    // The padding is wrong after decryption with a wrong key.
    const last = unlessMalformed(() => decipher.final(), null);
    const encSha256 = encHash.digest();
    if (!encSha256.equals(attachment.fileEncSha256)) {
      throw new AttachmentError("The encrypted file has a different hash");
    }
    if (!mac.digest().subarray(0, MAC_BYTES).equals(tail)) throw new AttachmentError("The file's MAC is wrong");
    if (!last) throw new AttachmentError("The file cannot be decrypted");
    plainHash.update(last);
    size += last.length;
    const sha256 = plainHash.digest();
    if (!sha256.equals(attachment.fileSha256)) throw new AttachmentError("The decrypted file has a different hash");
    if (size !== (attachment.fileLength ?? size)) {
      throw new AttachmentError("The file's length differs from what its message says");
    }
    const sealed = keptBytes <= KEPT_FILE_BYTES ? { kind, body: Buffer.concat(kept), encSha256 } : null;
    return { sha256: sha256.toString("hex"), size, sealed };
  });
}

/** Makes one request to the media host, with a timeout and on a connection of its own. */
async function transfer<T>(
  path: string,
  { runtime, media, request = {} }: Transfers & { request?: RequestInit },
  read: (response: Response) => Promise<T>,
): Promise<T> {
  if (!URL.canParse(path, media.url)) throw new AttachmentError(NO_PLACE);
  const target = new URL(path, media.url);
  if (target.origin !== new URL(media.url).origin) throw new AttachmentError("The file is not on the media host");
  const abort = new AbortController();
  const stopTimer = runtime.clock.after(TRANSFER_TIMEOUT_MS, () => abort.abort());
  const client = Deno.createHttpClient({ caCerts: [media.caPem] });
  try {
    const response = await fetch(target, { ...request, client, signal: abort.signal });
    if (!response.ok) {
      await response.body?.cancel();
      throw new AttachmentError(`The media host answered ${response.status}`);
    }
    return await read(response);
  } catch (error) {
    if (error instanceof AttachmentError) throw error;
    throw new AttachmentError("The media host could not be reached", { cause: error });
  } finally {
    stopTimer();
    client.close();
  }
}

/** Derives initialisation vector, cipher key and MAC key from a message's media key. */
function mediaKeys(mediaKey: Uint8Array, kind: SealedKind) {
  const expanded = hkdf(mediaKey, "", KINDS[kind].info, 112);
  return { iv: expanded.subarray(0, 16), cipherKey: expanded.subarray(16, 48), macKey: expanded.subarray(48, 80) };
}
