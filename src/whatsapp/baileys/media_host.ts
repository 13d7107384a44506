/**
 * HTTP to the network's media hosts. Never follows a redirect and never leaves the hosts that are named here. By
 * the gateway's own exchange: docs/decisions/0004.
 */
import { readFileSync } from "node:fs";
import { DEF_MEDIA_HOST, DEFAULT_ORIGIN } from "@whiskeysockets/baileys";
import type { WhatsAppConfig } from "../../config.ts";
import type { StreamedBody } from "../../egress/http1.ts";
import type { Proxy } from "../../egress/proxy.ts";
import { makeSafeFetch, type SafeRequest } from "../../egress/safe_fetch.ts";
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

export interface MediaAnswer {
  status: number;
  /** Bytes of the body as the host states them; null when it does not. */
  length: number | null;
  /** Errors when the connection ends before the body does. */
  body: ReadableStream<Uint8Array>;
}

export type MediaHost = ReturnType<typeof makeMediaHost>;

/** Throws when the CA file can't be read: a mistake in the settings, to be reported at start. */
export function makeMediaHost(
  config: Pick<WhatsAppConfig, "mediaUrl" | "ca">,
  clock: Clock,
  via?: Pick<Proxy, "connect">,
) {
  const base = config.mediaUrl ?? `https://${DEF_MEDIA_HOST}`;
  const ca = config.ca ? readFileSync(config.ca, "utf8") : null;
  const { fetch } = makeSafeFetch({ clock, allow: EVERY_HOST, caCerts: ca ? [ca] : [], via });

  function request(url: URL, options: Pick<SafeRequest, "method" | "headers" | "body" | "maxBytes" | "signal">) {
    return fetch({
      ...options,
      url: url.href,
      headers: { "origin": DEFAULT_ORIGIN, "user-agent": USER_AGENT, ...options.headers },
      schemes: ["https:", "http:"],
      maxRedirects: 0,
      timeoutMs: LONGEST_MS,
    });
  }

  return {
    /** Where a file lies: the host is always the network's (or the setting's), whatever the message says. */
    addressOf({ directPath, url }: { directPath?: string | null; url?: string | null }): URL | null {
      const place = directPath || url;
      if (!place || !URL.canParse(place, base)) return null;
      const { pathname, search } = new URL(place, base);
      // What follows the scheme of "data:…" or "x:@elsewhere" is no path: it would change the host's name.
      if (!pathname.startsWith("/")) return null;
      return new URL(base.replace(/\/$/, "") + pathname + search);
    },

    /** Throws when the host can't be reached; any status is an answer. The caller reads or cancels the body. */
    async get(url: URL, signal: AbortSignal): Promise<MediaAnswer> {
      const idle = startIdleTimeout(clock, signal);
      const answer = await request(url, { method: "GET", maxBytes: Infinity, signal: idle.signal })
        .finally(idle.end);
      const length = answer.headers.get("content-length");
      const reader = answer.body.getReader();
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          idle.begin();
          const { done, value } = await reader.read().finally(idle.end);
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel: (reason) => reader.cancel(reason),
      }, { highWaterMark: 0 });
      return { status: answer.status, length: length === null ? null : Number(length), body };
    },

    /** Posts the file. Throws when the host can't be reached or goes silent, and when the signal aborts. */
    async post(
      url: URL,
      { content, length }: StreamedBody,
      signal: AbortSignal,
    ): Promise<{ status: number; body: string }> {
      const idle = startIdleTimeout(clock, signal);
      async function* watched(): AsyncGenerator<Uint8Array> {
        for await (const bytes of content) {
          idle.begin();
          yield bytes;
        }
        idle.begin();
      }
      try {
        const answer = await request(url, {
          method: "POST",
          headers: { "content-type": "application/octet-stream" },
          body: { content: watched(), length },
          maxBytes: MAX_ANSWER_BYTES,
          signal: idle.signal,
        });
        return { status: answer.status, body: await new Response(answer.body).text() };
      } finally {
        idle.end();
      }
    },
  };
}

/** Begun at once; the signal aborts with `signal`, and when `begin` and `end` are not called for SILENCE_MS. */
function startIdleTimeout(clock: Clock, signal: AbortSignal) {
  const silent = new AbortController();
  let cancel = () => {};
  const idle = {
    signal: AbortSignal.any([signal, silent.signal]),
    begin() {
      cancel();
      cancel = clock.after(SILENCE_MS, () => silent.abort());
    },
    end: () => cancel(),
  };
  idle.begin();
  return idle;
}
