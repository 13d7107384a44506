/**
 * HTTP to the network's media hosts. Never follows a redirect and never leaves the hosts named here. It uses the
 * gateway's own HTTP exchange (docs/decisions/0004).
 */
import { readFileSync } from "node:fs";
import { DEF_MEDIA_HOST, DEFAULT_ORIGIN } from "@whiskeysockets/baileys";
import type { WhatsAppConfig } from "../../config.ts";
import type { StreamedBody } from "../../egress/http1.ts";
import type { Proxy } from "../../egress/proxy.ts";
import { makeSafeFetch, type SafeRequest } from "../../egress/safe_fetch.ts";
import type { Clock } from "../../runtime.ts";

/** A host that is silent for this long is given up. */
const SILENCE_MS = 60_000;
/** Limit for a whole file. Callers give up earlier, through the signal. */
const LONGEST_MS = 3_600_000;
/** For addresses that the network itself chooses, as `addressOf` does for every file: no host needs to be forbidden. */
export const EVERY_HOST = { allowsHost: () => true, allowsAddress: () => true };
/** The same as the library's own requests on Node.js. */
const USER_AGENT = "node";
/** Answers to uploads are short. */
const MAX_ANSWER_BYTES = 64 * 1024;

export interface MediaAnswer {
  status: number;
  /** Length of the body in bytes as stated by the host; null if it states none. */
  length: number | null;
  /** Errors if the connection ends before the body does. */
  body: ReadableStream<Uint8Array>;
}

export type MediaHost = ReturnType<typeof makeMediaHost>;

/** Throws if the CA file can't be read: a mistake in the settings that should be reported at start. */
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
    /**
     * Returns the address of a file. The host is always the network's (or the setting's), whatever the message says.
     */
    addressOf({ directPath, url }: { directPath?: string | null; url?: string | null }): URL | null {
      const place = directPath || url;
      if (!place || !URL.canParse(place, base)) return null;
      const { pathname, search } = new URL(place, base);
      // What follows the scheme of "data:…" or "x:@elsewhere" is not a path, and would change the host.
      if (!pathname.startsWith("/")) return null;
      return new URL(base.replace(/\/$/, "") + pathname + search);
    },

    /** Throws if the host can't be reached. Any status counts as an answer. The caller must read or cancel the body. */
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

    /** Posts the file. Throws if the host can't be reached or goes silent, or if the signal aborts. */
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

/** Starts at once. Its signal aborts with `signal`, or when SILENCE_MS pass without a call of `begin` or `end`. */
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
