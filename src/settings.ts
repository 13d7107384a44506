/** The settings: name, help and parser of each. `config.ts` turns them into the gateway's configuration. */
import { faultOfDatabaseUrl } from "./base/database_url.ts";
import { unlessMalformed } from "./base/retry.ts";
import { keysOf } from "./base/typed_keys.ts";
import { join } from "node:path";
import { isAddress, isNetwork, splitPort } from "./base/addresses.ts";

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Parses the text, which is not empty; calls `refuse` with every problem found. */
type Read<Value> = (text: string, refuse: (why: string) => void) => Value;

/** One setting. Its flag is derived from its environment name: `PALOMA_DATA_DIR`, `--data-dir`. */
interface Setting {
  /** The flag's argument, as shown in the help. */
  argument: string;
  about: string;
  read: Read<unknown>;
  /** The default value. */
  fallback: unknown;
}

function passing(test: (text: string) => boolean, why: string): Read<string> {
  return (text, refuse) => {
    if (!test(text)) refuse(why);
    return text;
  };
}

/** Accepts text that passes the test; otherwise refuses it as `"…" is not a port number`. */
function text(test: (text: string) => boolean, fault: string): Read<string> {
  return (text, refuse) => passing(test, `"${text}" ${fault}`)(text, refuse);
}

function as<From, To>(read: Read<From>, make: (value: From) => To): Read<To> {
  return (text, refuse) => make(read(text, refuse));
}

function list(test: (text: string) => boolean, fault: string): Read<string[]> {
  const one = text(test, fault);
  return (text, refuse) => text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => one(part, refuse));
}

function isUrl(value: string, protocols: readonly string[]): boolean {
  return URL.canParse(value) && protocols.includes(new URL(value).protocol);
}

function url(...protocols: string[]): Read<string> {
  return as(text((value) => isUrl(value, protocols), `is not a URL with ${protocols.join(" or ")}`), withoutEndSlashes);
}

/** A URL to which paths are appended. */
function baseUrl(...protocols: string[]): Read<string> {
  const isBase = (value: string) => isUrl(value, protocols) && !/[?#]/.test(value);
  return as(text(isBase, `is not a URL with ${protocols.join(" or ")}, without ? and #`), withoutEndSlashes);
}

/** Parses the URL of a store. Problems never show its password. */
function storeUrl(text: string, refuse: (why: string) => void): string {
  if (/^postgres(ql)?:/.test(text)) {
    const fault = faultOfDatabaseUrl(text);
    if (fault !== null) refuse(fault);
  } else if (!/^https?:/.test(text) || !URL.canParse(text)) {
    refuse("is not a URL with postgres: or https: or http:");
  }
  return withoutEndSlashes(text);
}

function withoutEndSlashes(url: string): string {
  return url.replace(/(?<!\/)\/+$/, "");
}

const port = as(
  text((value) => /^\d+$/.test(value) && Number(value) <= 65_535, "is not a port number (0 to 65535)"),
  Number,
);
const count = as(text((value) => /^[1-9]\d{0,6}$/.test(value), "is not a number from 1 to 9999999"), Number);
const days = as(text((value) => /^[1-9]\d{0,3}$/.test(value), "is not a number of days (1 to 9999)"), Number);

const logLevel: Read<LogLevel> = (value, refuse) => {
  const level = LOG_LEVELS.find((level) => level === value);
  if (!level) refuse(`"${value}" is not one of ${LOG_LEVELS.join(", ")}`);
  return level ?? "info";
};

const UNITS: Readonly<Record<string, number>> = { "": 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
const SIZE = /^(\d+(?:\.\d+)?) ?(KB|MB|GB|TB|)$/i;

/** Parses sizes such as `256MB` into bytes. */
const size = as(text((value) => SIZE.test(value), "is not a size like 256MB"), (value) => {
  const [, number, unit = ""] = SIZE.exec(value) ?? [];
  return Number(number) * UNITS[unit.toUpperCase()]!;
});

/** All settings, one row each. */
export const ROWS = {
  PALOMA_HOST: {
    argument: "<address>",
    about: "address to listen on (127.0.0.1)",
    read: text(isHost, "is neither an address nor a host name"),
    fallback: "127.0.0.1",
  },
  PALOMA_PORT: { argument: "<number>", about: "port to listen on; PORT works too (8080)", read: port, fallback: 8080 },
  PALOMA_DATA_DIR: {
    argument: "<folder>",
    about: "folder for all data (./data)",
    read: (path) => path,
    fallback: join(".", "data"),
  },
  PALOMA_BACKUP_DIR: {
    argument: "<folder>",
    about: "folder for the backups that the panel makes (backups, in the data folder)",
    read: (path) => path,
    fallback: null,
  },
  PALOMA_STORE: {
    argument: "<url>",
    about:
      "postgres://…@host[,host…]/… or http(s)://… of a Deno KV, shared by several machines (default: the data folder)",
    read: storeUrl,
    fallback: null,
  },
  PALOMA_MEDIA: {
    argument: "<url>",
    about: "s3://bucket/prefix?endpoint=…&region=… for files, with the usual AWS variables (default: the data folder)",
    read: text(isBucketUrl, "is not a URL like s3://bucket/prefix?endpoint=https://…&region=…"),
    fallback: null,
  },
  PALOMA_PUBLIC_URL: {
    argument: "<url>",
    about: "base URL of links in answers and events (default: host and port)",
    read: baseUrl("http:", "https:"),
    fallback: null,
  },
  PALOMA_SECRET_KEY: {
    argument: "<key>",
    about: "key that encrypts credentials at rest (default: created once in the data folder)",
    read: passing((key) => key.length >= 16, "needs at least 16 characters"),
    fallback: null,
  },
  PALOMA_LOG_LEVEL: {
    argument: "<level>",
    about: `${LOG_LEVELS.join(", ")} (info)`,
    read: logLevel,
    fallback: "info" as const,
  },
  PALOMA_TRUSTED_PROXIES: {
    argument: "<cidrs>",
    about: "CIDRs of proxies whose X-Forwarded-For is trusted (none)",
    read: list(isNetwork, "is neither an address nor a CIDR"),
    fallback: [],
  },
  PALOMA_MAX_CONNECTIONS: {
    argument: "<number>",
    about: "maximum open connections (default: derived from the limit of open files)",
    read: count,
    fallback: null,
  },
  PALOMA_MAX_CONNECTIONS_PER_ADDRESS: {
    argument: "<number>",
    about: "maximum open connections from one address, except trusted proxies (half of all)",
    read: count,
    fallback: null,
  },
  PALOMA_MAX_BODIES: {
    argument: "<size>",
    about: "memory for request bodies, at most a quarter for one account (128MB)",
    read: size,
    fallback: 128e6,
  },
  PALOMA_MEDIA_DISK: {
    argument: "<size>",
    about: "disk space for files; beyond it, the accounts that use most lose files early (10GB)",
    read: size,
    fallback: 10e9,
  },
  PALOMA_OUTBOUND_ALLOW: {
    argument: "<hosts>",
    about: "private hosts or CIDRs, optionally with :port, that webhooks and fileUrl may reach (none)",
    read: list(
      (entry) => {
        const { place, port } = splitPort(entry);
        if (port !== null && (port < 1 || port > 65_535)) return false;
        return isNetwork(place) || isHost(place.replace(/^\*\./, ""));
      },
      "is not an address, CIDR or host name (without scheme or path; a port is optional)",
    ),
    fallback: [],
  },
  PALOMA_MIN_FREE_DISK: {
    argument: "<size>",
    about: "free disk space below which sends are refused, and files below twice that (256MB)",
    read: size,
    fallback: 256e6,
  },
  PALOMA_WHATSAPP_URL: {
    argument: "<url>",
    about: "URL of the messaging network (WhatsApp's own)",
    read: url("ws:", "wss:"),
    fallback: null,
  },
  PALOMA_WHATSAPP_ROOT_KEY: {
    argument: "<hex>",
    about: "Noise root key of the messaging network (WhatsApp's own)",
    read: passing((key) => /^[0-9a-f]{64}$/i.test(key), "needs 64 hexadecimal digits"),
    fallback: null,
  },
  PALOMA_WHATSAPP_MEDIA_URL: {
    argument: "<url>",
    about: "base URL for media downloads (WhatsApp's own)",
    read: baseUrl("https:", "http:"),
    fallback: null,
  },
  PALOMA_WHATSAPP_CA: {
    argument: "<file>",
    about: "PEM file with certificates of media hosts",
    read: text(isCertificateFile, "is not a readable file with certificates in PEM form"),
    fallback: null,
  },
  PALOMA_WHATSAPP_VERSION: {
    argument: "<a.b.c>",
    about: "WhatsApp Web version to announce (the latest)",
    read: text((value) => /^\d+\.\d+\.\d+$/.test(value), "is not a version like 2.3000.1043857760"),
    fallback: null,
  },
  PALOMA_HISTORY_DAYS: {
    argument: "<days>",
    about: "how long messages are kept (365)",
    read: days,
    fallback: 365,
  },
  PALOMA_EVENT_DAYS: {
    argument: "<days>",
    about: "how long events are kept (30)",
    read: days,
    fallback: 30,
  },
  PALOMA_EVENT_BYTES: {
    argument: "<size>",
    about: "room for an account's events, with what is kept beside them (1GB)",
    read: size,
    fallback: 1e9,
  },
  PALOMA_SANDBOX_PORT: {
    argument: "<number>",
    about: "port of the sandbox's control API (8081)",
    read: port,
    fallback: 8081,
  },
} satisfies Record<string, Setting>;

export type SettingName = keyof typeof ROWS;
export type SettingValue<Name extends SettingName> =
  | ReturnType<(typeof ROWS)[Name]["read"]>
  | (typeof ROWS)[Name]["fallback"];

/** Variables with names given by others, which are not flags. */
export const FOREIGN = [
  "PORT",
  "DENO_KV_ACCESS_TOKEN",
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "AWS_REGION",
] as const;
type Foreign = (typeof FOREIGN)[number];

export type SettingValues = Partial<Record<SettingName | Foreign, string>>;

/** Every setting with its flag, for the command line. */
export const SETTINGS = keysOf(ROWS).map((env) => ({
  env,
  flag: `--${env.slice("PALOMA_".length).toLowerCase().replaceAll("_", "-")}`,
  argument: ROWS[env].argument,
  about: ROWS[env].about,
}));

const BUCKET_PARAMETERS = new Set(["endpoint", "region"]);

function isBucketUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, host, username, searchParams } = new URL(value);
  const endpoint = searchParams.get("endpoint");
  return protocol === "s3:" && host !== "" && username === "" &&
    [...searchParams.keys()].every((name) => BUCKET_PARAMETERS.has(name)) &&
    (endpoint === null || /^https?:/.test(endpoint) && URL.canParse(endpoint));
}

/** Whether the text is an address, or a host name valid in a URL; `256.1.1.1` is neither. */
function isHost(text: string): boolean {
  return isAddress(text) || /^[\w.-]+$/.test(text) && URL.canParse(`http://${text}`);
}

function isCertificateFile(path: string): boolean {
  return unlessMalformed(() => Deno.readTextFileSync(path).includes("-----BEGIN CERTIFICATE-----"), false);
}
