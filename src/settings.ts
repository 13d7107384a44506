/** The settings: the name, the help and the reading of each. `config.ts` makes of them what the gateway works with. */
import { keysOf } from "./base/typed_keys.ts";
import { join } from "node:path";
import { z } from "zod";
import { isAddress, isNetwork, splitPort } from "./base/ip_networks.ts";

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** One setting by its environment name, which is also its flag: `PALOMA_DATA_DIR`, `--data-dir`. */
interface Setting {
  /** What the flag takes, as help shows it. */
  argument: string;
  about: string;
  /** Reads the text, which is not empty, or takes what is left out. */
  schema: z.ZodType<unknown, string | null | undefined>;
}

/** Text that passes the test; else `"…" is not a port number`. */
function text(passes: (value: string) => boolean, fault: string) {
  return z.string().refine(passes, { error: ({ input }) => `"${input}" ${fault}` });
}

function list(passes: (value: string) => boolean, fault: string) {
  return z.string().default("")
    .transform((value) => value.split(",").map((part) => part.trim()).filter(Boolean))
    .pipe(z.array(text(passes, fault)));
}

function url(...protocols: string[]) {
  const isOne = (value: string) => URL.canParse(value) && protocols.includes(new URL(value).protocol);
  return text(isOne, `is not a URL with ${protocols.join(" or ")}`).transform((value) =>
    value.replace(/(?<!\/)\/+$/, "")
  )
    .nullable().default(null);
}

const port = text((value) => /^\d+$/.test(value) && Number(value) <= 65_535, "is not a port number (0 to 65535)")
  .transform(Number);

const count = text((value) => /^[1-9]\d{0,6}$/.test(value), "is not a number from 1 to 9999999").transform(Number);

const UNITS: Readonly<Record<string, number>> = { "": 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
const SIZE = /^(\d+(?:\.\d+)?) ?(KB|MB|GB|TB|)$/i;

/** Bytes from `256MB`. */
const size = text((value) => SIZE.test(value), "is not a size like 256MB").transform((value) => {
  const [, number, unit] = SIZE.exec(value)!;
  return Number(number) * UNITS[unit!.toUpperCase()]!;
});

/** One row each. */
export const SCHEMAS = {
  PALOMA_HOST: {
    argument: "<address>",
    about: "address to listen on (127.0.0.1)",
    schema: text(isHost, "is neither an address nor a host name").default("127.0.0.1"),
  },
  PALOMA_PORT: { argument: "<number>", about: "port to listen on; PORT works too (8080)", schema: port.default(8080) },
  PALOMA_DATA_DIR: {
    argument: "<folder>",
    about: "where everything is kept (./data)",
    schema: z.string().default(join(".", "data")),
  },
  PALOMA_STORE: {
    argument: "<url>",
    about: "postgres://… or the http(s)://… of a Deno KV, shared by many machines (else the data folder)",
    schema: url("postgres:", "postgresql:", "http:", "https:"),
  },
  PALOMA_MEDIA: {
    argument: "<url>",
    about: "s3://bucket/prefix?endpoint=…&region=…, with the usual AWS variables (else the data folder)",
    schema: text(isBucketUrl, "is not like s3://bucket/prefix?endpoint=https://…&region=…").nullable().default(null),
  },
  PALOMA_PUBLIC_URL: {
    argument: "<url>",
    about: "base of links that clients follow",
    schema: url("http:", "https:"),
  },
  PALOMA_SECRET_KEY: {
    argument: "<key>",
    about: "encrypts credentials at rest (else made once in the data folder)",
    schema: z.string().min(16, "needs at least 16 characters").nullable().default(null),
  },
  PALOMA_LOG_LEVEL: {
    argument: "<level>",
    about: LOG_LEVELS.join(", "),
    schema: z.enum(LOG_LEVELS, { error: ({ input }) => `"${input}" is not one of ${LOG_LEVELS.join(", ")}` })
      .default("info"),
  },
  PALOMA_TRUSTED_PROXIES: {
    argument: "<cidrs>",
    about: "CIDRs whose X-Forwarded-For is believed",
    schema: list(isNetwork, "is neither an address nor a CIDR"),
  },
  PALOMA_MAX_CONNECTIONS: {
    argument: "<number>",
    about: "connections that may be open (else by the limit of open files)",
    schema: count.nullable().default(null),
  },
  PALOMA_MAX_CONNECTIONS_PER_ADDRESS: {
    argument: "<number>",
    about: "of them from one address that is no trusted proxy (half of them)",
    schema: count.nullable().default(null),
  },
  PALOMA_MAX_BODIES: {
    argument: "<size>",
    about: "request bodies in memory at a time; a quarter of it for one account (128MB)",
    schema: size.default(128e6),
  },
  PALOMA_MEDIA_DISK: {
    argument: "<size>",
    about: "for files on disk; past it those of accounts that have most go early (10GB)",
    schema: size.default(10e9),
  },
  PALOMA_OUTBOUND_ALLOW: {
    argument: "<hosts>",
    about: "private hosts or CIDRs, maybe with :port, that webhooks and fileUrl may reach",
    schema: list(
      (entry) => {
        const { place } = splitPort(entry);
        return isNetwork(place) || isHost(place.replace(/^\*\./, ""));
      },
      "is no address, CIDR or host name, with or without a port (and without scheme or path)",
    ),
  },
  PALOMA_MIN_FREE_DISK: {
    argument: "<size>",
    about: "below this much free disk sends are refused (256MB)",
    schema: size.default(256e6),
  },
  PALOMA_WHATSAPP_URL: {
    argument: "<url>",
    about: "address of the messaging network",
    schema: url("ws:", "wss:"),
  },
  PALOMA_WHATSAPP_ROOT_KEY: {
    argument: "<hex>",
    about: "its Noise root key",
    schema: z.string().regex(/^[0-9a-f]{64}$/i, "needs 64 hexadecimal digits").nullable().default(null),
  },
  PALOMA_WHATSAPP_MEDIA_URL: {
    argument: "<url>",
    about: "base for media downloads",
    schema: url("https:", "http:"),
  },
  PALOMA_WHATSAPP_CA: {
    argument: "<file>",
    about: "PEM file for media hosts",
    schema: text(isCertificateFile, "is no readable file with certificates in PEM form").nullable().default(null),
  },
  PALOMA_WHATSAPP_VERSION: {
    argument: "<a.b.c>",
    about: "web version to announce",
    schema: text((value) => /^\d+\.\d+\.\d+$/.test(value), "is not a version like 2.3000.1043857760").nullable()
      .default(null),
  },
  PALOMA_HISTORY_DAYS: {
    argument: "<days>",
    about: "how long messages are kept (365)",
    schema: text((value) => /^[1-9]\d{0,3}$/.test(value), "is not a number of days (1 to 9999)").transform(Number)
      .default(365),
  },
  PALOMA_EVENT_DAYS: {
    argument: "<days>",
    about: "how long events are kept (30)",
    schema: text((value) => /^[1-9]\d{0,3}$/.test(value), "is not a number of days (1 to 9999)").transform(Number)
      .default(30),
  },
  PALOMA_SANDBOX_PORT: {
    argument: "<number>",
    about: "port of the sandbox's control API (8081)",
    schema: port.default(8081),
  },
} satisfies Record<string, Setting>;

export type SettingName = keyof typeof SCHEMAS;

/** Variables that others have named; they are no flags. */
export const FOREIGN = [
  "PORT",
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "AWS_REGION",
] as const;
type Foreign = (typeof FOREIGN)[number];

export type SettingValues = Partial<Record<SettingName | Foreign, string>>;

/** Every setting with its flag, for the command line. */
export const SETTINGS = keysOf(SCHEMAS).map((env) => ({
  env,
  flag: `--${env.slice("PALOMA_".length).toLowerCase().replaceAll("_", "-")}`,
  argument: SCHEMAS[env].argument,
  about: SCHEMAS[env].about,
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
