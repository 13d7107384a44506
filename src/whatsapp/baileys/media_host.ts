/**
 * HTTP to the network's media hosts, by node:https: the library's own requests go by `fetch`, which in Deno takes no
 * certificate authority per request. Never follows a redirect and never leaves the hosts that are named here.
 */
import { readFileSync } from "node:fs";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { DEF_MEDIA_HOST, DEFAULT_ORIGIN } from "@whiskeysockets/baileys";
import type { WhatsAppConfig } from "../../config.ts";

/** A host that says nothing for this long is given up. */
const SILENCE_MS = 60_000;
/** Answers to uploads are short. */
const MAX_ANSWER_BYTES = 64 * 1024;

export interface MediaHost {
  /** Where a file lies: the host is always the network's (or the setting's), whatever the message says. */
  addressOf(file: { directPath?: string | null; url?: string | null }): URL | null;
  /** Throws when the host can't be reached; any status is an answer. The caller reads or destroys the answer. */
  get(url: URL, signal: AbortSignal): Promise<IncomingMessage>;
  /** Posts `length` bytes. Throws also when the signal aborts. */
  post(
    url: URL,
    file: { content: AsyncIterable<Uint8Array>; length: number; signal: AbortSignal },
  ): Promise<{ status: number; body: string }>;
}

/** Throws when the CA file can't be read: a mistake in the settings, to be told at start. */
export function makeMediaHost(config: Pick<WhatsAppConfig, "mediaUrl" | "ca">): MediaHost {
  const base = config.mediaUrl ?? `https://${DEF_MEDIA_HOST}`;
  const agent = new Agent({ ...(config.ca ? { ca: readFileSync(config.ca) } : {}), keepAlive: false });

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

    get(url, signal) {
      return new Promise((resolve, reject) => {
        const request = open(url, { method: "GET", headers: {}, signal });
        request.on("response", resolve).on("error", reject).end();
      });
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
