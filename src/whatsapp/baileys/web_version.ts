/**
 * Decides which version of WhatsApp Web to announce: the network refuses a stale one after four or five months.
 *
 * Announced is the higher of the version of this release and the last one that was fetched, which is stored: a fetch
 * that fails refuses no line.
 */
import type { WAVersion } from "@whiskeysockets/baileys";
import { errorName } from "../../base/retry.ts";
import type { WhatsAppConfig } from "../../config.ts";
import type { Proxy } from "../../egress/proxy.ts";
import { makeSafeFetch } from "../../egress/safe_fetch.ts";
import type { Runtime } from "../../runtime.ts";
import { Change, type Kv } from "../../store/kv.ts";
import type { AnnouncedVersion } from "../connection.ts";
import { EVERY_HOST } from "./media_host.ts";
import { PINNED_VERSION } from "./pinned_version.ts";
import { type FetchedVersion, networkKeys } from "./rows.ts";

const REAL_NETWORK = "https://web.whatsapp.com";
const FETCH_TIMEOUT_MS = 5_000;
/** WhatsApp publishes several versions a day, and accepts each for months. */
const KEPT_MS = 6 * 60 * 60_000;
/** After a failed fetch, so that lines that reconnect together do not all wait for another. */
const RETRY_MS = 60_000;
/** The page of the service worker is some 10 KB. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
const REVISION = /client_revision\\?":\s*(\d{1,15})/;
/** Without these the page is not served. */
const HEADERS = {
  "sec-fetch-site": "none",
  "user-agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
};

/** The announced version and its source. */
export type WebVersion = Omit<AnnouncedVersion, "expiresAt">;

const PINNED: WebVersion = {
  version: PINNED_VERSION.version,
  source: "built in",
  since: Date.parse(PINNED_VERSION.releasedAt),
};

interface WebVersionsOptions {
  whatsapp: Pick<WhatsAppConfig, "url" | "version">;
  kv: Pick<Kv, "get" | "commit">;
  runtime: Pick<Runtime, "clock" | "log">;
}

export function makeWebVersions({ whatsapp, kv, runtime: { clock, log } }: WebVersionsOptions) {
  const set: WebVersion | null = whatsapp.version === null
    ? null
    : { version: whatsapp.version, source: "setting", since: clock.now() };
  const page = new URL("/sw.js", whatsapp.url?.replace(/^ws/, "http") ?? REAL_NETWORK);
  let fetching: { until: number; done: Promise<FetchedVersion | null> } | null = null;
  let last: WebVersion | null = null;

  /** Resolves to the version fetched now, or the last one that was; null if there is none. Never rejects. */
  async function fetchVersion(via: Pick<Proxy, "connect"> | null): Promise<FetchedVersion | null> {
    try {
      const fetched = { version: `2.3000.${await revisionAt(page, via)}`, host: page.hostname, at: clock.now() };
      await kv.commit(new Change().set(networkKeys.waVersion(), fetched));
      return fetched;
    } catch (error) {
      if (fetching) fetching.until = clock.now() + RETRY_MS;
      log.warn({ error: errorName(error) }, "the current WhatsApp Web version could not be fetched");
      return await kv.get(networkKeys.waVersion()).then(({ value }) => value, () => null);
    }
  }

  async function revisionAt(url: URL, via: Pick<Proxy, "connect"> | null): Promise<string> {
    const { fetch } = makeSafeFetch({ clock, allow: EVERY_HOST, ...(via ? { via } : {}) });
    const { status, body } = await fetch({
      url: url.href,
      method: "GET",
      headers: HEADERS,
      schemes: ["https:", "http:"],
      maxRedirects: 0,
      timeoutMs: FETCH_TIMEOUT_MS,
      maxBytes: MAX_PAGE_BYTES,
    });
    const text = await new Response(body).text();
    const revision = status === 200 ? REVISION.exec(text)?.[1] : undefined;
    if (revision === undefined) throw new RangeError(`the page names no version (${status})`);
    return revision;
  }

  return {
    /**
     * Resolves to the version from the setting; otherwise to the higher of this release's and the last one fetched, now
     * through `via` (null: directly) if that was hours ago. Never rejects.
     */
    async now(via: Pick<Proxy, "connect"> | null): Promise<WebVersion> {
      if (set) return last = set;
      if (!fetching || clock.now() >= fetching.until) {
        fetching = { until: clock.now() + KEPT_MS, done: fetchVersion(via) };
      }
      const fetched = await fetching.done;
      const newer = fetched && fetched.version.localeCompare(PINNED.version, "en", { numeric: true }) >= 0;
      return last = newer ? { version: fetched.version, source: fetched.host, since: fetched.at } : PINNED;
    },
    /** Returns the version given out last; null before the first. */
    last: () => last,
    /** Returns the version known without a fetch. */
    known: () => last ?? set ?? PINNED,
    /** Called when the network refused the version (405): the next call of `now` fetches it again. */
    renew: () => void (fetching = null),
  };
}

/** Returns the version in the library's form. */
export function partsOf(version: string): WAVersion {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  return [major, minor, patch];
}
