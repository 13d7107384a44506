/** The doctor's checks of the data: in a folder of this machine, or in a shared store and a bucket. */
import { connect } from "node:net";
import { hostOf, portOf } from "../base/addresses.ts";
import { within } from "../base/within.ts";
import { membersAtWork } from "../cluster/member.ts";
import type { BucketConfig, Config } from "../config.ts";
import { AlreadyRunning, type DataFolder, lockGateway, placeOf } from "../data/data_folder.ts";
import { isBackupDue } from "../data/kept_backups.ts";
import { dataKeys } from "../data/rows.ts";
import { LINE, lineKeys } from "../line/rows.ts";
import { openBucket } from "../media/s3.ts";
import { freeBytesOf } from "../ops/disk_reserve.ts";
import { systemClock } from "../runtime.ts";
import { storeKeys } from "../store/layers/rows.ts";
import { webhookKeys } from "../webhook/rows.ts";
import { hasData, silentRuntime, withFolder } from "./data.ts";
import { localUrl } from "./settings.ts";

export interface Found {
  ok: boolean;
  detail: string;
  /** Suggested action; null: none. */
  hint: string | null;
}

export type Check = [string, () => Found | Promise<Found>];

export const well = (detail: string, hint: string | null = null): Found => ({ ok: true, detail, hint });
export const bad = (detail: string, hint: string): Found => ({ ok: false, detail, hint });

const CONNECT_TIMEOUT_MS = 5_000;
const ASK_TIMEOUT_MS = 5_000;
const TRY_TIMEOUT_MS = 10_000;
/** Permission bits of everybody but the owner. */
const OTHERS = 0o077;

const NO_FOLDER = "paloma serve creates it; or check PALOMA_DATA_DIR (--data-dir)";
const NO_ROWS = "paloma serve, api or account create initializes it; or check PALOMA_STORE (--store)";

export async function checksOfData(config: Config): Promise<Check[]> {
  const { dataDir, media, store } = config;
  const [name, hint] = store === null ? ["data folder", NO_FOLDER] : ["store", NO_ROWS];
  try {
    // Does not create a folder or a store: a restore needs it empty.
    if (!await hasData(config)) return [[name, () => well(`there is no data in ${placeOf(config)} yet`, hint)]];
  } catch (error) {
    return [[name, () => Promise.reject(error)]];
  }
  const isLocal = store === null;
  const ofData = (check: string, look: (data: DataFolder) => Promise<Found>): Check => [
    check,
    () => withFolder(config, look),
  ];
  const ofFiles: Check[] = media !== null
    ? [["bucket", () => checkBucket(media)]]
    : isLocal
    ? []
    : [["files", () => well(NO_BUCKET, "set PALOMA_MEDIA")]];
  const ofDisk: Check[] = [
    ofData("store log", checkLog),
    ["file rights", () => checkRights(dataDir)],
    ["disk space", () => checkDisk(config)],
  ];
  return [
    ofData(name, (data) => checkAccounts(data, placeOf(config))),
    ...(isLocal ? ofDisk : []),
    ...ofFiles,
    ["gateway", () => isLocal ? checkGateway(config) : checkPort(config)],
    ...(isLocal ? [] : [ofData("workers", checkWorkers)]),
    ofData("time", checkTime),
    ofData("lines", checkLines),
    ofData("backup", checkBackup),
    ofData("webhook targets", checkWebhooks),
  ];
}

const NO_BUCKET = "api and worker refuse files (503), and serve keeps them in a folder that others cannot read";

/** Decrypts every account's key, to detect one encrypted with another secret key. */
async function checkAccounts({ accounts }: DataFolder, place: string): Promise<Found> {
  const all = await accounts.list();
  for (const { id } of all) await accounts.apiKey(id);
  const count = `${all.length} account${all.length === 1 ? "" : "s"}, keys can be decrypted`;
  return well(
    `${place} can be read and written, ${count}`,
    all.length === 0 ? "paloma account create --name NAME --plan own" : null,
  );
}

/** By how much a running gateway may be behind with what it keeps of the confirmed time. */
const CONFIRMED_LATE_MS = 30 * 60_000;

/** A gateway that was not running has confirmed nothing either, so that this is no fault. */
async function checkTime({ kv }: DataFolder): Promise<Found> {
  const { value } = await kv.get(dataKeys.confirmedAt());
  if (value === null) return well("no gateway has run for ten minutes yet");
  const text = `last confirmed at ${new Date(value).toISOString()}`;
  if (systemClock.now() - value <= CONFIRMED_LATE_MS) return well(text);
  return well(text, "if a gateway has run since, the clock jumped ahead: check it, nothing expires or is deleted");
}

/** How long a log that was missing at a start is a fault. */
const LOG_MISSING_MS = 7 * 86_400_000;

async function checkLog({ kv }: DataFolder): Promise<Found> {
  const { value } = await kv.get(storeKeys.logMissing());
  if (value === null) return well("was there after every kill");
  const text = `paloma.db-wal was missing at ${new Date(value).toISOString()}, with what was committed last before`;
  if (systemClock.now() - value > LOG_MISSING_MS) return well(text);
  return bad(text, "send again what GET /v1/messages lacks; copy and move the files of a store together");
}

async function checkBackup({ kv, accounts }: DataFolder): Promise<Found> {
  const { value } = await kv.get(dataKeys.backedUpAt());
  const text = value === null ? "none was made yet" : `last made at ${new Date(value).toISOString()}`;
  const isDue = isBackupDue(value, { accounts: await accounts.list(), now: systemClock.now() });
  return well(text, isDue ? "paloma backup --into FOLDER, every night" : null);
}

/** Checks the permissions of the folder only: its files are made private whenever they are opened. */
async function checkRights(dataDir: string): Promise<Found> {
  const { mode } = await Deno.stat(dataDir);
  if (mode === null || (mode & OTHERS) === 0) return well("only the owner can read the data folder");
  return bad(`${dataDir} can be read by other users, including the files in media/`, `chmod 700 ${dataDir}`);
}

function checkDisk({ dataDir, minFreeDisk }: Config): Found {
  const free = freeBytesOf(dataDir);
  const gb = (bytes: number) => `${(bytes / 1e9).toFixed(2)} GB`;
  const text = `${gb(free)} free, sends are refused below ${gb(minFreeDisk)}, files below ${gb(2 * minFreeDisk)}`;
  if (free < 2 * minFreeDisk) return bad(text, "free up space, or lower PALOMA_MIN_FREE_DISK");
  return well(text, free < 4 * minFreeDisk ? "free up space soon" : null);
}

/** Puts, gets and deletes an object. Listing would be cheaper, but needs a permission that the gateway does not. */
async function checkBucket(config: BucketConfig): Promise<Found> {
  const bucket = openBucket(config, silentRuntime);
  const name = `doctor-${silentRuntime.ids.next("med")}`;
  const tried = (async () => {
    await bucket.put(name, new TextEncoder().encode("paloma doctor"));
    await (await bucket.get(name))?.cancel();
    await bucket.delete(name);
    return null;
  })().catch((error) => error instanceof Error ? error.message : String(error));
  const trouble = await within(systemClock, TRY_TIMEOUT_MS, tried);
  if (trouble === null) return well(`files can be stored in ${config.bucket}, read and deleted`);
  return bad(
    `${config.bucket}: ${trouble === "late" ? "no answer in time" : trouble}`,
    "check endpoint, region and keys, and that the keys may put, get and delete",
  );
}

async function checkGateway(config: Config): Promise<Found> {
  const { fileEngine } = await import("../engines.ts");
  try {
    (await lockGateway(config.dataDir, fileEngine)).release();
    return well("none is running on this folder", "paloma serve");
  } catch (error) {
    if (!(error instanceof AlreadyRunning)) throw error;
  }
  const answer = await readiness(config);
  if (answer.isReady) return well(answer.text);
  return bad(
    `one is running on this folder, but ${answer.text}`,
    "check that PALOMA_PORT is the port it was started with; otherwise its log says why it is not ready",
  );
}

/**
 * Checks for a gateway at this machine's port; gateways on a shared store may also run elsewhere, so none is no fault.
 */
async function checkPort(config: Config): Promise<Found> {
  const { isReady, isThere, text } = await readiness(config);
  if (isReady) return well(text);
  return isThere
    ? bad(text, "its log says why it is not ready")
    : well(text, "start one here, unless one is running on another machine");
}

async function readiness(config: Config): Promise<{ isReady: boolean; isThere: boolean; text: string }> {
  const url = `${localUrl(config)}/readyz`;
  const answer = await ask(url);
  await answer?.body?.cancel();
  if (answer === null) return { isReady: false, isThere: false, text: `${url} does not answer` };
  const isReady = answer.status === 200;
  const text = isReady ? `ready at ${localUrl(config)}` : `${url} answers ${answer.status}`;
  return { isReady, isThere: true, text };
}

async function checkWorkers({ kv }: DataFolder): Promise<Found> {
  const running = await membersAtWork(kv, systemClock);
  if (running.length === 0) return well("none is running: nothing is sent or received", "paloma worker");
  const lines = running.map(({ held }) => held[LINE.name] ?? 0).sort((a, b) => b - a);
  return well(`running: ${running.length}, with lines: ${lines.join(", ")}`);
}

/** Finds lines whose export was killed: they stay paused, because their files may be complete. */
async function checkLines({ kv }: DataFolder): Promise<Found> {
  const exporting: string[] = [];
  for await (const { value } of kv.list({ prefix: lineKeys.lines() })) {
    if (value.wanted === "exporting") exporting.push(value.id);
  }
  if (exporting.length === 0) return well("none is being exported");
  return bad(
    `being exported, or left over from an export that was interrupted: ${exporting.join(", ")}`,
    "if no export is running, delete its file, and export again or reconnect the session",
  );
}

/** Checks that each webhook's host accepts a connection; each host is tried once. */
async function checkWebhooks({ kv }: DataFolder): Promise<Found> {
  const targets = new Map<string, URL>();
  for await (const { value } of kv.list({ prefix: webhookKeys.webhooks() })) {
    const url = new URL(value.url);
    targets.set(url.host, url);
  }
  const silent: string[] = [];
  await Promise.all([...targets.values()].map(async (url) => {
    const trouble = await connectTo(url);
    if (trouble !== null) silent.push(`${url.host} (${trouble})`);
  }));
  if (silent.length === 0) {
    return well(targets.size === 0 ? "there are none" : `hosts that accept connections: ${targets.size}`);
  }
  return bad(`cannot be reached: ${silent.join(", ")}`, "events stay in the log: redeliver them once the host is back");
}

/** Resolves to the response; null if there is none in time. */
export async function ask(url: string, method = "GET"): Promise<Response | null> {
  try {
    return await fetch(url, { method, signal: AbortSignal.timeout(ASK_TIMEOUT_MS) });
  } catch {
    return null;
  }
}

/** Resolves to null if a connection was made, otherwise to the reason why not. */
export function connectTo(url: URL): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host: hostOf(url), port: portOf(url), timeout: CONNECT_TIMEOUT_MS });
    const end = (trouble: string | null) => {
      socket.destroy();
      resolve(trouble);
    };
    socket.once("connect", () => end(null));
    socket.once("timeout", () => end("no answer in time"));
    socket.once("error", (error) => end(error.message));
  });
}
