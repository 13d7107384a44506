/**
 * HTTP to the network's media hosts. Never follows a redirect and never leaves the hosts that are named here.
 *
 * Downloads go by the gateway's own exchange: on Deno 2.4 a connection that drops is never told by node:https, and one
 * that drops within the body leaves a rejection that ends the process.
 */
import { readFileSync } from "node:fs";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { DEF_MEDIA_HOST, DEFAULT_ORIGIN } from "@whiskeysockets/baileys";
import type { WhatsAppConfig } from "../../config.ts";
import { makeSafeFetch } from "../../egress/safe_fetch.ts";
import type { Clock } from "../../runtime.ts";

/** A host that says nothing for this long is given up. */
const SILENCE_MS = 60_000;
/** For a whole download; its caller gives up earlier, by the signal. */
const LONGEST_MS = 3_600_000;
/** The addresses of files are ours to choose (`addressOf`), so that no host is forbidden. */
const EVERY_HOST = { allowsHost: () => true, allowsAddress: () => true };
/** As the library's own requests say on Node.js. */
const USER_AGENT = "node";
/** Answers to uploads are short. */
const MAX_ANSWER_BYTES = 64 * 1024;

export interface MediaHost {
  /** Where a file lies: the host is always the network's (or the setting's), whatever the message says. */
  addressOf(file: { directPath?: string | null; url?: string | null }): URL | null;
  /** Throws when the host can't be reached; any status is an answer. The caller reads or cancels the body. */
  get(url: URL, options: { clock: Clock; signal: AbortSignal }): Promise<MediaAnswer>;
  /** Posts `length` bytes. Throws also when the signal aborts. */
  post(
    url: URL,
    file: { content: AsyncIterable<Uint8Array>; length: number; signal: AbortSignal },
  ): Promise<{ status: number; body: string }>;
}

export interface MediaAnswer {
  status: number;
  /** Bytes of the body as the host tells them; null when it does not. */
  length: number | null;
  /** Errors when the connection ends before the body does. */
  body: ReadableStream<Uint8Array>;
}

/** Throws when the CA file can't be read: a mistake in the settings, to be told at start. */
export function makeMediaHost(config: Pick<WhatsAppConfig, "mediaUrl" | "ca">): MediaHost {
  const base = config.mediaUrl ?? `https://${DEF_MEDIA_HOST}`;
  const ca = config.ca ? readFileSync(config.ca, "utf8") : null;
  const agent = new Agent({ ...(ca ? { ca } : {}), keepAlive: false });

  function open(url: URL, options: { method: string; headers: Record<string, string>; signal?: AbortSignal }) {
    const { method, headers, signal } = options;
    const secure = url.protocol === "https:";
    const request = (secure ? httpsRequest : httpRequest)(url, {
      method,
      headers: { Origin: DEFAULT_ORIGIN, ...headers },
      timeout: SILENCE_MS,
      ...(secure ? { agent } : {}),
      ...(signal ? { signal } : {}),
    });
    request.on("timeout", () => request.destroy(new Error("the media host went silent")));
    return request;
  }

  return {
    addressOf({ directPath, url }) {
      const place = directPath || url;
      if (!place || !URL.canParse(place, base)) return null;
      const { pathname, search } = new URL(place, base);
      return new URL(base.replace(/\/$/, "") + pathname + search);
    },

    async get(url, { clock, signal }) {
      const silent = new AbortController();
      async function heard<T>(promise: Promise<T>): Promise<T> {
        const cancel = clock.after(SILENCE_MS, () => silent.abort());
        return await promise.finally(cancel);
      }
      const { fetch } = makeSafeFetch({ clock, allow: EVERY_HOST, caCerts: ca ? [ca] : [] });
      const answer = await heard(fetch({
        url: url.href,
        method: "GET",
        headers: { origin: DEFAULT_ORIGIN, "user-agent": USER_AGENT },
        schemes: ["https:", "http:"],
        maxRedirects: 0,
        timeoutMs: LONGEST_MS,
        maxBytes: Infinity,
        signal: AbortSignal.any([signal, silent.signal]),
      }));
      const length = answer.headers.get("content-length");
      const reader = answer.body.getReader();
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          const { done, value } = await heard(reader.read());
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel: (reason) => reader.cancel(reason),
      }, { highWaterMark: 0 });
      return { status: answer.status, length: length === null ? null : Number(length), body };
    },

    post(url, { content, length, signal }) {
      return new Promise((resolve, reject) => {
        const headers = { "Content-Type": "application/octet-stream", "Content-Length": String(length) };
        const request = open(url, { method: "POST", headers, signal });
        request.on("error", reject).on("response", (response: IncomingMessage) => {
          readText(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
        });
        // Ends the request when the content fails, and the content when the request does.
        pipeline(Readable.from(content), request).catch(reject);
      });
    },
  };
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response) {
    size += (chunk as Uint8Array).length;
    if (size > MAX_ANSWER_BYTES) throw new Error("the media host's answer is too long");
    chunks.push(chunk as Uint8Array);
  }
  return new TextDecoder().decode(await new Blob(chunks as BlobPart[]).arrayBuffer());
}
