/** A media store in memory that keeps the promises of the port. */
import { createHash } from "node:crypto";
import { Buffer } from "node:buffer";
import { Problem } from "../../src/errors.ts";
import type { MediaStore } from "../../src/media/store.ts";

export interface FakeMedia extends MediaStore {
  readonly files: Map<string, Uint8Array>;
}

export function fakeMedia(): FakeMedia {
  const files = new Map<string, Uint8Array>();
  return {
    assertPlace() {},
    files,
    async write(content, maxBytes) {
      const chunks: Uint8Array[] = [];
      let size = 0;
      for await (const chunk of content) {
        size += chunk.length;
        if (size > maxBytes) throw new Problem("payload_too_large", `The file is larger than ${maxBytes} bytes.`);
        chunks.push(chunk);
      }
      const bytes = Buffer.concat(chunks);
      const fileId = `med_${files.size + 1}`;
      files.set(fileId, bytes);
      return { fileId, size, sha256: createHash("sha256").update(bytes).digest("hex") };
    },
    head: (fileId, length) => Promise.resolve(files.get(fileId)?.subarray(0, length) ?? new Uint8Array()),
    read: (fileId, { start, length }) =>
      Promise.resolve(ReadableStream.from([files.get(fileId)!.slice(start, start + length)])),
    onDisk: (fileId) => Promise.resolve({ path: `/files/${fileId}`, [Symbol.asyncDispose]: () => Promise.resolve() }),
    remove: (fileId) => Promise.resolve(void files.delete(fileId)),
  };
}
