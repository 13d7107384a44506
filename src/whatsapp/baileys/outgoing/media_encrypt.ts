/**
 * Encrypting a file for upload. It is read and encrypted twice, once for the hashes that the upload's address needs and
 * once on its way out, so nothing is written to disk and a kill leaves no copy behind.
 */
import { createCipheriv, createHash, createHmac } from "node:crypto";
import { access } from "node:fs/promises";
import { getMediaKeys } from "@whiskeysockets/baileys";
import type { MediaKind } from "../incoming/content.ts";
import type { Random } from "../../../runtime.ts";
import { MAC_BYTES } from "../incoming/media_download.ts";

const KEY_BYTES = 32;
const CHUNK_BYTES = 64 * 1024;

export interface EncryptedFile {
  mediaKey: Uint8Array;
  /** Of the file as it is, and of what is uploaded. */
  fileSha256: Uint8Array;
  fileEncSha256: Uint8Array;
  fileLength: number;
  encryptedLength: number;
  /** What is uploaded, from its beginning, as often as it is asked for. */
  content(): AsyncIterable<Uint8Array>;
}

/** Throws when the file can't be read. */
export async function encryptFile(path: string, kind: MediaKind, random: Random): Promise<EncryptedFile> {
  await access(path);
  const mediaKey = random.bytes(KEY_BYTES);
  const { iv, cipherKey, macKey } = await getMediaKeys(mediaKey, kind);
  const plain = createHash("sha256");
  const encrypted = createHash("sha256");
  let fileLength = 0;
  let encryptedLength = 0;

  async function* content(seen: (chunk: Uint8Array) => void = () => {}): AsyncGenerator<Uint8Array> {
    const cipher = createCipheriv("aes-256-cbc", cipherKey, iv);
    const mac = createHmac("sha256", macKey!).update(iv);
    using file = await Deno.open(path);
    // One buffer for the whole file: fresh ones fill the memory faster than they are collected.
    const buffer = new Uint8Array(CHUNK_BYTES);
    for (let read = await file.read(buffer); read !== null; read = await file.read(buffer)) {
      const chunk = buffer.subarray(0, read);
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
