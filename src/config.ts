/** The gateway's configuration, read from its settings. All problems are reported together. */
import { OperatorError } from "./errors.ts";
import { type LogLevel, ROWS, type SettingName, type SettingValue, type SettingValues } from "./settings.ts";

export interface Config {
  host: string;
  port: number;
  dataDir: string;
  /** URL of the store, credentials included; null: in the data folder. */
  store: string | null;
  /** Where files are kept; null: in the data folder. */
  media: BucketConfig | null;
  /** Base of links that clients follow; null: derived from host and port. */
  publicUrl: string | null;
  /** Null: generated once in the data folder. */
  secretKey: string | null;
  logLevel: LogLevel;
  /** CIDRs whose X-Forwarded-For is believed. */
  trustedProxies: string[];
  /** Null: derived from the process's limit of open files. */
  maxConnections: number | null;
  /** Null: half of `maxConnections`. */
  maxConnectionsPerAddress: number | null;
  /** Bytes of request bodies in memory at a time. */
  maxBodies: number;
  /** Bytes of media files on disk. */
  mediaDisk: number;
  /** Private hosts or CIDRs, optionally with a port, that webhooks and `fileUrl` may reach, also over plain http. */
  outboundAllow: string[];
  /** Bytes. */
  minFreeDisk: number;
  whatsapp: WhatsAppConfig;
  sandboxPort: number;
  /** How many days messages are kept. */
  historyDays: number;
  /** How many days events are kept. */
  eventDays: number;
  /** Most bytes of an account's events, with what is kept beside them. */
  eventBytes: number;
  /** Folder of the backups that the panel makes; null: in the data folder. */
  backupDir: string | null;
  /** The settings as they were given, for processes that the gateway starts. */
  given: SettingValues;
}

/** A bucket of S3 or a compatible server. */
export interface BucketConfig {
  bucket: string;
  /** Of every object name: empty, or ends in a slash. */
  prefix: string;
  /** Base URL of a compatible server; null: Amazon's in the region. */
  endpoint: string | null;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** For temporary credentials. */
  sessionToken: string | null;
}

/** Where the messaging network is; null means the real one. */
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

/** The settings are not valid; each problem begins with the variable or flag that the operator wrote. */
export class SettingsError extends OperatorError {
  override name = "SettingsError";

  constructor(readonly problems: readonly string[]) {
    super("settings_invalid", ["The settings are not valid:", ...problems.map((each) => `  ${each}`)].join("\n"));
  }
}

/** The value that Kubernetes gives PALOMA_PORT in every pod next to a service named paloma. */
const SERVICE_LINK = /^(tcp|udp|sctp):\/\//;

/**
 * Parses the settings and checks the files that they name; `written` returns the name by which the operator gave a
 * setting. Throws SettingsError with every problem.
 */
export function readConfig({ PORT, ...given }: SettingValues, written = (name: SettingName): string => name): Config {
  const problems: string[] = [];
  const values = SERVICE_LINK.test(given.PALOMA_PORT ?? "") ? { ...given, PALOMA_PORT: "" } : given;
  const isPortForeign = !values.PALOMA_PORT?.trim() && PORT !== undefined;
  function read<Name extends SettingName>(
    name: Name,
    given = values[name],
    label = written(name),
  ): SettingValue<Name> {
    const { read, fallback } = ROWS[name];
    const text = given?.trim();
    if (!text) return fallback;
    const before = problems.length;
    const value = read(text, (why) => problems.push(`${label}: ${why}`));
    return problems.length > before ? fallback : value as SettingValue<Name>;
  }
  const config: Config = {
    host: read("PALOMA_HOST"),
    port: isPortForeign ? read("PALOMA_PORT", PORT, "PORT") : read("PALOMA_PORT"),
    dataDir: read("PALOMA_DATA_DIR"),
    store: read("PALOMA_STORE"),
    media: readBucket(read("PALOMA_MEDIA"), values, (why) => problems.push(`${written("PALOMA_MEDIA")}: ${why}`)),
    publicUrl: read("PALOMA_PUBLIC_URL"),
    secretKey: read("PALOMA_SECRET_KEY"),
    logLevel: read("PALOMA_LOG_LEVEL"),
    trustedProxies: read("PALOMA_TRUSTED_PROXIES"),
    maxConnections: read("PALOMA_MAX_CONNECTIONS"),
    maxConnectionsPerAddress: read("PALOMA_MAX_CONNECTIONS_PER_ADDRESS"),
    maxBodies: read("PALOMA_MAX_BODIES"),
    mediaDisk: read("PALOMA_MEDIA_DISK"),
    outboundAllow: read("PALOMA_OUTBOUND_ALLOW"),
    minFreeDisk: read("PALOMA_MIN_FREE_DISK"),
    whatsapp: {
      url: read("PALOMA_WHATSAPP_URL"),
      rootKey: read("PALOMA_WHATSAPP_ROOT_KEY"),
      mediaUrl: read("PALOMA_WHATSAPP_MEDIA_URL"),
      ca: read("PALOMA_WHATSAPP_CA"),
      version: read("PALOMA_WHATSAPP_VERSION"),
    },
    sandboxPort: read("PALOMA_SANDBOX_PORT"),
    historyDays: read("PALOMA_HISTORY_DAYS"),
    eventDays: read("PALOMA_EVENT_DAYS"),
    eventBytes: read("PALOMA_EVENT_BYTES"),
    backupDir: read("PALOMA_BACKUP_DIR"),
    given,
  };
  // A key that one machine makes for itself opens nothing on the others.
  if (config.store && !values.PALOMA_SECRET_KEY?.trim()) {
    problems.push(`PALOMA_SECRET_KEY: is required with ${written("PALOMA_STORE")}, the same on every machine`);
  }
  if (config.store?.startsWith("http") && !values.DENO_KV_ACCESS_TOKEN) {
    problems.push(`${written("PALOMA_STORE")}: needs DENO_KV_ACCESS_TOKEN to be set`);
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return config;
}

function readBucket(
  media: string | null | undefined,
  values: SettingValues,
  refuse: (why: string) => void,
): BucketConfig | null {
  if (!media) return null;
  const { host, pathname, searchParams } = new URL(media);
  const given = (name: keyof SettingValues) => values[name]?.trim() || null;
  const [accessKeyId, secretAccessKey] = [given("AWS_ACCESS_KEY_ID"), given("AWS_SECRET_ACCESS_KEY")];
  if (!accessKeyId || !secretAccessKey) refuse("needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to be set");
  return {
    bucket: host,
    prefix: pathname.split("/").filter(Boolean).map((part) => `${part}/`).join(""),
    endpoint: searchParams.get("endpoint")?.replace(/(?<!\/)\/+$/, "") ?? null,
    region: searchParams.get("region") || given("AWS_REGION") || "us-east-1",
    accessKeyId: accessKeyId ?? "",
    secretAccessKey: secretAccessKey ?? "",
    sessionToken: given("AWS_SESSION_TOKEN"),
  };
}
