/** Decides which version of WhatsApp Web to announce: the network refuses to link a stale one. */
import { DEFAULT_CONNECTION_CONFIG, fetchLatestWaWebVersion, type WAVersion } from "@whiskeysockets/baileys";
import type { WhatsAppConfig } from "../../config.ts";
import type { Runtime } from "../../runtime.ts";
import type { AnnouncedVersion } from "../connection.ts";

const FETCH_TIMEOUT_MS = 5_000;
/** WhatsApp publishes several versions a day, and accepts each for weeks. */
const KEPT_MS = 6 * 60 * 60 * 1000;

/** The announced version and its source. */
export interface WebVersion {
  version: WAVersion;
  source: "setting" | "web.whatsapp.com" | "built in";
  /** When it was learned, Unix ms; the start of the process if it was not fetched. */
  since: number;
}

/** Converts it to the port's form. */
export function shownVersion(announced: WebVersion): AnnouncedVersion {
  return { ...announced, version: announced.version.join(".") };
}

export function makeWebVersions(
  config: Pick<WhatsAppConfig, "url" | "version">,
  runtime: Pick<Runtime, "clock" | "log">,
) {
  const { clock, log } = runtime;
  const since = clock.now();
  const builtIn: WebVersion = { version: DEFAULT_CONNECTION_CONFIG.version, source: "built in", since };
  const set = config.version === null ? null : versionOf(config.version);
  let latest: { at: number; version: Promise<WebVersion> } | undefined;
  let last: WebVersion | null = null;

  async function ask(): Promise<WebVersion> {
    const { version, isLatest } = await fetchLatestWaWebVersion({ signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
    if (isLatest) return { version, source: "web.whatsapp.com", since: clock.now() };
    latest = undefined;
    log.warn(
      { version: builtIn.version.join(".") },
      "could not learn the current WhatsApp Web version; using the built-in one",
    );
    return builtIn;
  }

  function present(): WebVersion | Promise<WebVersion> {
    if (set) return { version: set, source: "setting", since };
    if (config.url !== null) return builtIn;
    if (!latest || clock.now() - latest.at > KEPT_MS) latest = { at: clock.now(), version: ask() };
    return latest.version;
  }

  return {
    /**
     * Resolves to the version from the setting; otherwise to the latest from web.whatsapp.com (fetched on the real
     * network only); otherwise to the one built into the library. Never rejects.
     */
    now: async () => last = await present(),
    /** Returns the version given out last; null before the first. */
    last: () => last,
    /** Called when the network refused the version (405): the next call of `now` fetches it again. */
    renew: () => void (latest = undefined),
  };
}

function versionOf(text: string): WAVersion {
  const [major = 0, minor = 0, patch = 0] = text.split(".").map(Number);
  return [major, minor, patch];
}
