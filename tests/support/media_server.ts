/** A media host on loopback that answers each download as it is told, down to the bytes on the wire. */
import { Buffer } from "node:buffer";
import { createCipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { getMediaKeys } from "@whiskeysockets/baileys";
import type { MediaKind } from "../../src/whatsapp/baileys/content.ts";

/** Answers one request on its connection, and ends it. */
export type MediaAnswer = (connection: Socket) => void;

export interface MediaServer {
  url: string;
  /** The paths that were asked for. */
  asked: string[];
  close(): Promise<void>;
}

/** Listens on a free port; `answer` says for each path how it is answered. */
export async function mediaServer(answer: (path: string) => MediaAnswer): Promise<MediaServer> {
  const asked: string[] = [];
  const open = new Set<Socket>();
  const server = createServer((connection) => {
    open.add(connection);
    connection.on("close", () => open.delete(connection)).on("error", () => {});
    let head = "";
    connection.on("data", (chunk) => {
      head += chunk.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      const path = head.split(" ")[1]!;
      head = "";
      asked.push(path);
      answer(path)(connection);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async close() {
      for (const connection of open) connection.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const whole = (bytes: Uint8Array): MediaAnswer => written(200, `Content-Length: ${bytes.length}`, bytes);
/** Only the status, and a length of none. */
export const status = (code: number): MediaAnswer => written(code, "Content-Length: 0", new Uint8Array(0));
/** The connection's end is the file's end: HTTP's oldest way, which can't tell a cut from an end. */
export const withoutLength = (bytes: Uint8Array): MediaAnswer => written(200, "X-None: 0", bytes);
/** The head tells the whole length, and the connection ends after half of it. */
export const cutShort = (bytes: Uint8Array): MediaAnswer =>
  written(200, `Content-Length: ${bytes.length}`, bytes.subarray(0, bytes.length >> 1));
/** One chunk, and no last one. */
export const cutBetweenChunks = (bytes: Uint8Array): MediaAnswer => {
  const half = bytes.subarray(0, bytes.length >> 1);
  return written(
    200,
    "Transfer-Encoding: chunked",
    Buffer.concat([Buffer.from(`${half.length.toString(16)}\r\n`), half]),
  );
};
export const dropped: MediaAnswer = (connection) => connection.destroy();

function written(code: number, header: string, body: Uint8Array): MediaAnswer {
  return (connection) => {
    connection.write(`HTTP/1.1 ${code} Whatever\r\nConnection: close\r\n${header}\r\n\r\n`);
    connection.end(body);
  };
}

/** A file as a sender uploads it, and what its message says of it. */
export async function uploaded(plain: Uint8Array, kind: MediaKind = "image") {
  const mediaKey = randomBytes(32);
  const { iv, cipherKey, macKey } = await getMediaKeys(mediaKey, kind);
  const cipher = createCipheriv("aes-256-cbc", cipherKey, iv);
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  const mac = createHmac("sha256", macKey!).update(iv).update(body).digest().subarray(0, 10);
  const bytes = Buffer.concat([body, mac]);
  const file = {
    directPath: "/v/t62/file?ccb=1&oh=2",
    url: "https://evil.example/v/other",
    mediaKey,
    fileSha256: createHash("sha256").update(plain).digest(),
    fileEncSha256: createHash("sha256").update(bytes).digest(),
    fileLength: plain.length,
    mimetype: "image/jpeg",
  };
  return { file, bytes };
}
