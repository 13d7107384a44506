/**
 * HTTP to the network's media hosts. Never follows a redirect and never leaves the hosts that are named here.
 *
 * By the gateway's own exchange: on Deno 2.4 a connection that drops is never told by node:https, and one that drops
 * within a body, either way, leaves a rejection that ends the process.
 */
import { readFileSync } from "node:fs";
import { DEF_MEDIA_HOST, DEFAULT_ORIGIN } from "@whiskeysockets/baileys";
import type { WhatsAppConfig } from "../../config.ts";
import type { StreamedBody } from "../../egress/http1.ts";
import { makeSafeFetch } from "../../egress/safe_fetch.ts";
import type { Clock } from "../../runtime.ts";

/** A host that says nothing for this long is given up. */
const SILENCE_MS = 60_000;
/** For a whole file; its caller gives up earlier, by the signal. */
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
  /** Posts the file. Throws when the host can't be reached or goes silent, and when the signal aborts. */
  post(
    url: URL,
    file: StreamedBody,
    options: { clock: Clock; signal: AbortSignal },
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
  const common = {
    schemes: ["https:", "http:"] as const,
    maxRedirects: 0,
    timeoutMs: LONGEST_MS,
  };
  const fetcher = (clock: Clock) => makeSafeFetch({ clock, allow: EVERY_HOST, caCerts: ca ? [ca] : [] });

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
      const answer = await heard(
        fetcher(clock).fetch({
          ...common,
          url: url.href,
          method: "GET",
          headers: { origin: DEFAULT_ORIGIN, "user-agent": USER_AGENT },
          maxBytes: Infinity,
          signal: AbortSignal.any([signal, silent.signal]),
        }),
      );
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

    async post(url, { content, length }, { clock, signal }) {
      const silent = new AbortController();
      let cancel = () => {};
      const progress = () => {
        cancel();
        cancel = clock.after(SILENCE_MS, () => silent.abort());
      };
      async function* watched(): AsyncGenerator<Uint8Array> {
        for await (const bytes of content) {
          progress();
          yield bytes;
        }
        progress();
      }
      progress();
      try {
        const answer = await fetcher(clock).fetch({
          ...common,
          url: url.href,
          method: "POST",
          headers: {
            "origin": DEFAULT_ORIGIN,
            "user-agent": USER_AGENT,
            "content-type": "application/octet-stream",
          },
          body: { content: watched(), length },
          maxBytes: MAX_ANSWER_BYTES,
          signal: AbortSignal.any([signal, silent.signal]),
        });
        return { status: answer.status, body: await new Response(answer.body).text() };
      } finally {
        cancel();
      }
    },
  };
}
