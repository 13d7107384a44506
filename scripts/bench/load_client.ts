/**
 * Load as a process: as many connections as asked, each with one request on its way at a time. A plain HTTP/1.1 client on
 * sockets, because it shares two cores with what it measures.
 */
import { percentile } from "./measure.ts";
import { runAsChild } from "./child.ts";

export interface Load {
  /** `http://HOST:PORT` */
  url: string;
  /** Each connection sends them in turn, and begins where the one before it goes on. */
  requests: readonly { path: string; headers: Readonly<Record<string, string>>; body: unknown }[];
  connections: number;
  /** Not counted. */
  warmMs: number;
  measureMs: number;
  /** The status that counts; any other fails the bench. */
  status: number;
}

export interface LoadResult {
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
}

async function load({ url, requests, connections, warmMs, measureMs, status }: Load): Promise<LoadResult> {
  const { hostname, port } = new URL(url);
  const begin = performance.now() + warmMs;
  const end = begin + measureMs;
  const tookMs: number[] = [];
  const encoded = requests.map((request) => encode(hostname, request));
  await Promise.all(Array.from({ length: connections }, async (_, i) => {
    const connection = await Deno.connect({ hostname, port: Number(port) });
    connection.setNoDelay(true);
    let next = i;
    const buffer = new Uint8Array(16 * 1024);
    for (let sentAt = performance.now(); sentAt < end;) {
      const bytes = encoded[next % encoded.length]!;
      next += connections;
      for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
      const answer = await readAnswer(connection, buffer);
      const now = performance.now();
      if (answer.status !== status) throw new Error(`answered ${answer.status}: ${answer.text}`);
      if (sentAt >= begin && now <= end) tookMs.push(now - sentAt);
      sentAt = now;
    }
    connection.close();
  }));
  return { perSecond: tookMs.length / measureMs * 1000, p50Ms: percentile(tookMs, 50), p99Ms: percentile(tookMs, 99) };
}

function encode(host: string, { path, headers, body }: Load["requests"][number]): Uint8Array {
  const content = new TextEncoder().encode(JSON.stringify(body));
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${host}`,
    "content-type: application/json",
    `content-length: ${content.length}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return new Uint8Array([...new TextEncoder().encode(head.join("\r\n") + "\r\n\r\n"), ...content]);
}

const latin1 = new TextDecoder("latin1");

async function readAnswer(connection: Deno.Conn, buffer: Uint8Array): Promise<{ status: number; text: string }> {
  let text = "";
  for (;;) {
    const read = await connection.read(buffer);
    if (read === null) throw new Error("the server closed a connection");
    text += latin1.decode(buffer.subarray(0, read));
    if (isComplete(text)) return { status: Number(text.slice(9, 12)), text };
  }
}

function isComplete(text: string): boolean {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
  return length === undefined ? text.endsWith("\r\n0\r\n\r\n") : text.length >= headEnd + 4 + Number(length);
}

if (import.meta.main) {
  await runAsChild<null, Load>(() => Promise.resolve({ ready: true, answer: load }));
}
