/** Settings: flag, else environment, else default; every problem reported together. */
import { join } from "node:path";
import { isAddress, isNetwork } from "./base/ip_networks.ts";

export interface Config {
  host: string;
  port: number;
  dataDir: string;
  /** Base of links that clients follow; null: derived from host and port. */
  publicUrl: string | null;
  /** Null: made once in the data folder. */
  secretKey: string | null;
  logLevel: LogLevel;
  /** CIDRs whose X-Forwarded-For is believed. */
  trustedProxies: string[];
  /** Private hosts or CIDRs that webhooks and `fileUrl` may reach, and over plain http. */
  outboundAllow: string[];
  whatsapp: WhatsAppConfig;
  sandboxPort: number;
}

/** Where the messaging network is; every null means the real one. */
export interface WhatsAppConfig {
  url: string | null;
  /** Noise root public key, hex. */
  rootKey: string | null;
  mediaUrl: string | null;
  /** Path of a PEM file. */
  ca: string | null;
  /** `2.3000.1043857760`. */
  version: string | null;
}

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** One setting: its environment name is also its flag (`PALOMA_DATA_DIR`, `--data-dir`). */
interface Setting {
  env: string;
  flag: string;
  argument: string;
  about: string;
}

export const SETTINGS = [
  { env: "PALOMA_HOST", flag: "--host", argument: "<address>", about: "address to listen on (127.0.0.1)" },
  { env: "PALOMA_PORT", flag: "--port", argument: "<number>", about: "port to listen on; PORT works too (8080)" },
  { env: "PALOMA_DATA_DIR", flag: "--data-dir", argument: "<folder>", about: "where everything is kept (./data)" },
  { env: "PALOMA_PUBLIC_URL", flag: "--public-url", argument: "<url>", about: "base of links that clients follow" },
  {
    env: "PALOMA_SECRET_KEY",
    flag: "--secret-key",
    argument: "<key>",
    about: "encrypts credentials at rest (else made once in the data folder)",
  },
  {
    env: "PALOMA_LOG_LEVEL",
    flag: "--log-level",
    argument: "<level>",
    about: "trace, debug, info, warn, error, silent",
  },
  {
    env: "PALOMA_TRUSTED_PROXIES",
    flag: "--trusted-proxies",
    argument: "<cidrs>",
    about: "CIDRs whose X-Forwarded-For is believed",
  },
  {
    env: "PALOMA_OUTBOUND_ALLOW",
    flag: "--outbound-allow",
    argument: "<hosts>",
    about: "private hosts or CIDRs that webhooks and fileUrl may reach",
  },
  { env: "PALOMA_WHATSAPP_URL", flag: "--whatsapp-url", argument: "<url>", about: "address of the messaging network" },
  { env: "PALOMA_WHATSAPP_ROOT_KEY", flag: "--whatsapp-root-key", argument: "<hex>", about: "its Noise root key" },
  {
    env: "PALOMA_WHATSAPP_MEDIA_URL",
    flag: "--whatsapp-media-url",
    argument: "<url>",
    about: "base for media downloads",
  },
  { env: "PALOMA_WHATSAPP_CA", flag: "--whatsapp-ca", argument: "<file>", about: "PEM file for media hosts" },
  { env: "PALOMA_WHATSAPP_VERSION", flag: "--whatsapp-version", argument: "<a.b.c>", about: "web version to announce" },
  {
    env: "PALOMA_SANDBOX_PORT",
    flag: "--sandbox-port",
    argument: "<number>",
    about: "port of the sandbox's control API (8081)",
  },
] as const satisfies readonly Setting[];

export type SettingName = (typeof SETTINGS)[number]["env"];
export type SettingValues = Partial<Record<SettingName | "PORT", string>>;

/** Reads settings from their text forms, and the files that they name. Returns every problem, not only the first. */
export function readConfig(values: SettingValues): { config: Config; problems: string[] } {
  const problems: string[] = [];
  const text = (name: SettingName | "PORT"): string | null => values[name]?.trim() || null;
  const port = (name: SettingName | "PORT", fallback: number): number => {
    const value = text(name);
    if (value === null) return fallback;
    const number = Number(value);
    if (/^\d+$/.test(value) && number <= 65_535) return number;
    problems.push(`${name}: "${value}" is not a port number (0 to 65535)`);
    return fallback;
  };
  const url = (name: SettingName, schemes: string[]): string | null => {
    const value = text(name);
    if (value === null) return null;
    if (URL.canParse(value) && schemes.includes(new URL(value).protocol)) return value.replace(/\/+$/, "");
    problems.push(`${name}: "${value}" is not a URL with ${schemes.join(" or ")}`);
    return null;
  };
  const list = (name: SettingName): string[] =>
    (text(name) ?? "").split(",").map((part) => part.trim()).filter(Boolean);

  const logLevel = (text("PALOMA_LOG_LEVEL") ?? "info") as LogLevel;
  if (!LOG_LEVELS.includes(logLevel)) {
    problems.push(`PALOMA_LOG_LEVEL: "${logLevel}" is not one of ${LOG_LEVELS.join(", ")}`);
  }
  const secretKey = text("PALOMA_SECRET_KEY");
  if (secretKey !== null && secretKey.length < 16) problems.push("PALOMA_SECRET_KEY: needs at least 16 characters");
  const trustedProxies = list("PALOMA_TRUSTED_PROXIES");
  for (const cidr of trustedProxies) {
    if (!isNetwork(cidr)) {
      problems.push(`PALOMA_TRUSTED_PROXIES: "${cidr}" is neither an address nor a CIDR`);
    }
  }
  const host = text("PALOMA_HOST") ?? "127.0.0.1";
  if (!isHost(host)) problems.push(`PALOMA_HOST: "${host}" is neither an address nor a host name`);
  const outboundAllow = list("PALOMA_OUTBOUND_ALLOW");
  for (const entry of outboundAllow) {
    if (!isNetwork(entry) && !isHost(entry.replace(/^\*\./, ""))) {
      problems.push(
        `PALOMA_OUTBOUND_ALLOW: "${entry}" is no address, CIDR or host name (without scheme, port or path)`,
      );
    }
  }
  const ca = text("PALOMA_WHATSAPP_CA");
  if (ca !== null && !isCertificateFile(ca)) {
    problems.push(`PALOMA_WHATSAPP_CA: "${ca}" is no readable file with certificates in PEM form`);
  }
  const rootKey = text("PALOMA_WHATSAPP_ROOT_KEY");
  if (rootKey !== null && !/^[0-9a-f]{64}$/i.test(rootKey)) {
    problems.push("PALOMA_WHATSAPP_ROOT_KEY: needs 64 hexadecimal digits");
  }
  const version = text("PALOMA_WHATSAPP_VERSION");
  if (version !== null && !/^\d+\.\d+\.\d+$/.test(version)) {
    problems.push(`PALOMA_WHATSAPP_VERSION: "${version}" is not a version like 2.3000.1043857760`);
  }
  const config: Config = {
    host,
    port: text("PALOMA_PORT") !== null ? port("PALOMA_PORT", 8080) : port("PORT", 8080),
    dataDir: text("PALOMA_DATA_DIR") ?? join(".", "data"),
    publicUrl: url("PALOMA_PUBLIC_URL", ["http:", "https:"]),
    secretKey,
    logLevel,
    trustedProxies,
    outboundAllow,
    whatsapp: {
      url: url("PALOMA_WHATSAPP_URL", ["ws:", "wss:"]),
      rootKey,
      mediaUrl: url("PALOMA_WHATSAPP_MEDIA_URL", ["https:", "http:"]),
      ca,
      version,
    },
    sandboxPort: port("PALOMA_SANDBOX_PORT", 8081),
  };
  return { config, problems };
}

/** An address, or a name as it stands in URLs: `256.1.1.1` is neither. */
function isHost(text: string): boolean {
  return isAddress(text) || /^[\w.-]+$/.test(text) && URL.canParse(`http://${text}`);
}

function isCertificateFile(path: string): boolean {
  try {
    return Deno.readTextFileSync(path).includes("-----BEGIN CERTIFICATE-----");
  } catch {
    return false;
  }
}
