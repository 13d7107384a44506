/** Files as they are uploaded: encrypted on the way, the same each time, whatever their size. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createDecipheriv, createHash, randomBytes } from "node:crypto";
import { getMediaKeys } from "@whiskeysockets/baileys";
import { systemRandom } from "../../../../src/runtime.ts";
import { encryptFile } from "../../../../src/whatsapp/baileys/outgoing/media_upload.ts";
import { tempFolder } from "../../../support/temp_folder.ts";

const MAC_BYTES = 10;

for (const size of [0, 1, 13, 15, 16, 17, 65_536, 65_537, 200_000]) {
  Deno.test(`a file of ${size} bytes is encrypted twice the same, in pieces of which none is empty`, async () => {
    await using temp = await tempFolder();
    const file = randomBytes(size);
    await Deno.writeFile(`${temp.path}/file`, file);
    const encrypted = await encryptFile(`${temp.path}/file`, "document", systemRandom);
    const [pieces, again] = [
      await Array.fromAsync(encrypted.content()),
      await Array.fromAsync(encrypted.content()),
    ];
    assert.ok(pieces.every((piece) => piece.length > 0));
    const upload = Buffer.concat(pieces);
    assert.deepEqual(Buffer.concat(again), upload);
    assert.deepEqual([encrypted.fileLength, encrypted.encryptedLength], [size, upload.length]);
    assert.deepEqual(Buffer.from(encrypted.fileSha256), createHash("sha256").update(file).digest());
    assert.deepEqual(Buffer.from(encrypted.fileEncSha256), createHash("sha256").update(upload).digest());
    const { iv, cipherKey } = await getMediaKeys(encrypted.mediaKey, "document");
    const decipher = createDecipheriv("aes-256-cbc", cipherKey, iv);
    const plain = Buffer.concat([decipher.update(upload.subarray(0, -MAC_BYTES)), decipher.final()]);
    assert.deepEqual(plain, Buffer.from(file));
  });
}
