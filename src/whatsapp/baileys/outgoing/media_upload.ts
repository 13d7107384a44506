/** Encrypts files, and uploads them to the hosts that the network names. */
import { Buffer } from "node:buffer";
import { createCipheriv, createHash, createHmac } from "node:crypto";
import { access } from "node:fs/promises";
import { getMediaKeys, MEDIA_PATH_MAP, type WASocket } from "@whiskeysockets/baileys";
import { unlessMalformed } from "../../../base/retry.ts";
import type { Random } from "../../../runtime.ts";
import type { MediaKind } from "../incoming/content.ts";
import { MAC_BYTES } from "../incoming/media.ts";
import type { MediaHost } from "../media_host.ts";

/** The kinds of files in messages, and the picture of a link's preview. */
type UploadKind = MediaKind | "thumbnail-link";

/** The location of an uploaded file, as its message states it. */
interface MediaPlace {
  url: string;
  directPath: string;
}

/** No host accepted the file. Another attempt may work. */
export class UploadFailed extends Error {
  override name = "UploadFailed";
}

export type Upload = (file: EncryptedFile, options: { kind: UploadKind; signal: AbortSignal }) => Promise<MediaPlace>;

/**
 * Returns an upload that uses the socket's permit. It throws UploadFailed, or the signal's reason when the signal
 * aborts.
 */
export function uploadTo(host: MediaHost, socket: Pick<WASocket, "refreshMediaConn">): Upload {
  return async (file, { kind, signal }) => {
    const token = Buffer.from(file.fileEncSha256).toString("base64url");
    let failure = "the network named no media host";
    // A second round requests new hosts and a new permit, because the present ones may have expired.
    for (const renew of [false, true]) {
      const { hosts, auth } = await socket.refreshMediaConn(renew);
      for (const { hostname } of hosts) {
        signal.throwIfAborted();
        const url = new URL(`https://${hostname}${MEDIA_PATH_MAP[kind]}/${token}`);
        url.searchParams.set("auth", auth);
        url.searchParams.set("token", token);
        try {
          const content = { content: file.content(), length: file.encryptedLength };
          const { status, body } = await host.post(url, content, signal);
          const place = status === 200 ? placeIn(body) : null;
          if (place) return place;
          failure = `the media host answered ${status}`;
        } catch (error) {
          failure = error instanceof Error ? error.message : String(error);
        }
      }
    }
    signal.throwIfAborted();
    throw new UploadFailed(failure);
  };
}

function placeIn(body: string): MediaPlace | null {
  const answer: { url?: string; direct_path?: string } | null = unlessMalformed(() => JSON.parse(body), null);
  return answer?.direct_path ? { url: answer.url ?? "", directPath: answer.direct_path } : null;
}

const KEY_BYTES = 32;
const CHUNK_BYTES = 64 * 1024;

interface EncryptedFile {
  mediaKey: Uint8Array;
  /** Hashes of the plain file and of the encrypted upload. */
  fileSha256: Uint8Array;
  fileEncSha256: Uint8Array;
  fileLength: number;
  encryptedLength: number;
  /** The bytes to upload. Each call starts from the beginning. */
  content(): AsyncIterable<Uint8Array>;
}

/**
 * Encrypts a file, given by its path or its bytes. It is read and encrypted twice, once for the hashes needed in the upload's address and once while
 * uploading, so nothing is written to disk and a kill leaves no copy behind. Throws if the file can't be read.
 */
export async function encryptFile(
  file: string | Uint8Array,
  kind: UploadKind,
  random: Random,
): Promise<EncryptedFile> {
  if (typeof file === "string") await access(file);
  const mediaKey = random.bytes(KEY_BYTES);
  const { iv, cipherKey, macKey } = await getMediaKeys(mediaKey, kind);
  const plain = createHash("sha256");
  const encrypted = createHash("sha256");
  let fileLength = 0;
  let encryptedLength = 0;

  async function* content(seen: (chunk: Uint8Array) => void = () => {}): AsyncGenerator<Uint8Array> {
    const cipher = createCipheriv("aes-256-cbc", cipherKey, iv);
    const mac = createHmac("sha256", macKey!).update(iv);
    for await (const chunk of chunksOf(file)) {
      seen(chunk);
      const bytes = cipher.update(chunk);
      mac.update(bytes);
      if (bytes.length > 0) yield bytes;
    }
    const last = cipher.final();
    mac.update(last);
    if (last.length > 0) yield last;
    yield mac.digest().subarray(0, MAC_BYTES);
  }

  const count = (chunk: Uint8Array) => {
    plain.update(chunk);
    fileLength += chunk.length;
  };
  for await (const bytes of content(count)) {
    encrypted.update(bytes);
    encryptedLength += bytes.length;
  }
  return {
    mediaKey,
    fileSha256: plain.digest(),
    fileEncSha256: encrypted.digest(),
    fileLength,
    encryptedLength,
    content: () => content(),
  };
}

/** Reads a file. Each chunk is overwritten by the next: new ones would fill memory faster than they are collected. */
async function* chunksOf(file: string | Uint8Array): AsyncGenerator<Uint8Array> {
  if (typeof file !== "string") return yield file;
  using opened = await Deno.open(file);
  const buffer = new Uint8Array(CHUNK_BYTES);
  for (let read = await opened.read(buffer); read !== null; read = await opened.read(buffer)) {
    yield buffer.subarray(0, read);
  }
}
