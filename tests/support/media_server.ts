/** A media host on loopback that answers each download as it is told, down to the bytes on the wire. */
import { Buffer } from "node:buffer";
import { createCipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { getMediaKeys } from "@whiskeysockets/baileys";
import type { MediaKind } from "../../src/whatsapp/baileys/incoming/content.ts";

/** Answers one request on its connection, which then ends unless the answer never does. */
export type MediaAnswer = (connection: Deno.Conn) => Promise<void>;

export interface MediaServer {
  url: string;
  /** The paths that were asked for. */
  asked: string[];
  close(): Promise<void>;
}

/** Listens on a free port; `answer` says for each path how it is answered. */
export function mediaServer(answer: (path: string) => MediaAnswer): MediaServer {
  const asked: string[] = [];
  const open = new Map<Deno.Conn, Promise<void>>();
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });

  async function serve(connection: Deno.Conn): Promise<void> {
    try {
      const path = await readPath(connection);
      asked.push(path);
      await answer(path)(connection);
    } catch {
      // The client went away, or this server closes.
    } finally {
      closeQuietly(connection);
      open.delete(connection);
    }
  }

  const listening = (async () => {
    for await (const connection of listener) open.set(connection, serve(connection));
  })();
  return {
    url: `http://127.0.0.1:${listener.addr.port}`,
    asked,
    async close() {
      const served = [...open.values()];
      listener.close();
      for (const connection of open.keys()) closeQuietly(connection);
      await Promise.all([listening, ...served]);
    },
  };
}

async function readPath(connection: Deno.Conn): Promise<string> {
  let head = "";
  const buffer = new Uint8Array(4096);
  while (!head.includes("\r\n\r\n")) {
    const read = await connection.read(buffer);
    if (read === null) throw new Error("the client left before its request had ended");
    head += new TextDecoder().decode(buffer.subarray(0, read));
  }
  return head.split(" ")[1]!;
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // Closed already.
  }
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
export const dropped: MediaAnswer = () => Promise.resolve();
/** Begins, and then says nothing more; `silent` is called when it has begun. */
export function fallsSilent(bytes: Uint8Array, silent: () => void): MediaAnswer {
  return async (connection) => {
    await writeAll(connection, head(200, `Content-Length: ${bytes.length}`));
    await writeAll(connection, bytes.subarray(0, bytes.length >> 1));
    silent();
    await connection.read(new Uint8Array(1));
  };
}

function written(code: number, header: string, body: Uint8Array): MediaAnswer {
  return async (connection) => {
    await writeAll(connection, head(code, header));
    await writeAll(connection, body);
  };
}

function head(code: number, header: string): Uint8Array {
  return new TextEncoder().encode(`HTTP/1.1 ${code} Whatever\r\nConnection: close\r\n${header}\r\n\r\n`);
}

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}

/** A file as a sender uploads it, and what its message says of it. */
export async function uploaded(plain: Uint8Array, kind: MediaKind | "md-app-state" = "image") {
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
