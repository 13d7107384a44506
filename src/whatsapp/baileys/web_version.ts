/** Which version of WhatsApp Web to announce: the network refuses to link a stale one. */
import { DEFAULT_CONNECTION_CONFIG, fetchLatestWaWebVersion, type WAVersion } from "@whiskeysockets/baileys";
import type { WhatsAppConfig } from "../../config.ts";
import type { Runtime } from "../../runtime.ts";

const FETCH_TIMEOUT_MS = 5_000;
/** WhatsApp publishes several versions a day, and accepts each for weeks. */
const KEPT_MS = 6 * 60 * 60 * 1000;

/**
 * The setting, else the latest that web.whatsapp.com serves (asked for on the real network only), else the one that
 * the library was released with. Never rejects.
 */
export function webVersion(
  config: Pick<WhatsAppConfig, "url" | "version">,
  runtime: Pick<Runtime, "clock" | "log">,
): () => Promise<WAVersion> {
  const { clock, log } = runtime;
  const pinned = DEFAULT_CONNECTION_CONFIG.version;
  const set = config.version?.split(".").map(Number) as WAVersion | undefined;
  let latest: { at: number; version: Promise<WAVersion> } | undefined;

  async function ask(): Promise<WAVersion> {
    const { version, isLatest } = await fetchLatestWaWebVersion({ signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
    if (!isLatest) {
      latest = undefined;
      log.warn(
        { version: pinned.join(".") },
        "could not learn the current WhatsApp Web version; using the built-in one",
      );
      return pinned;
    }
    return version;
  }

  return () => {
    if (set) return Promise.resolve(set);
    if (config.url !== null) return Promise.resolve(pinned);
    if (!latest || clock.now() - latest.at > KEPT_MS) latest = { at: clock.now(), version: ask() };
    return latest.version;
  };
}
