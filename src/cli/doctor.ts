/** `paloma doctor`: looks for what keeps a gateway from working, and says what to do about it. */
import { connect } from "node:net";
import type { Command } from "commander";
import { hostOf, portOf } from "../base/addresses.ts";
import type { Config } from "../config.ts";
import { AlreadyRunning } from "../data/gateway_lock.ts";
import type { DataFolder } from "../data/data_folder.ts";
import { freeBytesOf } from "../ops/disk_reserve.ts";
import { type Clock, systemClock } from "../runtime.ts";
import { SETTINGS } from "../settings.ts";
import { webhookKeys } from "../webhook/rows.ts";
import { hasData, withFolder } from "./data.ts";
import { Exit, print, printResult, table } from "./output.ts";
import { configOf, localUrl, withSettings } from "./settings.ts";

interface Finding {
  check: string;
  ok: boolean;
  detail: string;
  /** What to do; null for nothing. */
  hint: string | null;
}

type Found = Omit<Finding, "check">;

const CONNECT_TIMEOUT_MS = 5_000;
const ASK_TIMEOUT_MS = 5_000;
const HOUR_S = 60 * 60;
/** WhatsApp's certificates, media links and signatures are checked against the clock. */
const CLOCK_MAY_BE_OFF_MS = 60_000;
const REAL_NETWORK = "wss://web.whatsapp.com/ws/chat";
/** Bits by which others than the owner may read. */
const OTHERS = 0o077;

const NO_DATA = "paloma serve makes it; or is PALOMA_DATA_DIR (--data-dir) another?";

const well = (detail: string, hint: string | null = null): Found => ({ ok: true, detail, hint });
const bad = (detail: string, hint: string): Found => ({ ok: false, detail, hint });

export function addDoctorCommand(root: Command): void {
  withSettings(root.command("doctor").description("look for what keeps the gateway from working"))
    .option("--json", "print JSON")
    .action(async (options) => {
      const findings = await examine(configOf(options));
      printResult(options, findings, () =>
        table(findings.flatMap(({ ok, check, detail, hint }) => [
          [ok ? "✓" : "✗", check, detail],
          ...(hint === null ? [] : [["", "", `→ ${hint}`]]),
        ])));
      const bad = findings.filter(({ ok }) => !ok).length;
      if (bad > 0) throw new Exit(1, `${bad} of ${findings.length} checks failed.`);
      if (!options.json) print("All is well.");
    });
}

/** Every finding; a check that cannot run counts as failed. */
async function examine(config: Config): Promise<Finding[]> {
  const network = config.whatsapp.url ?? REAL_NETWORK;
  type Check = [string, () => Found | Promise<Found>];
  // Who only looks makes no folder.
  const ofData: Check[] = await hasData(config)
    ? [
      ["data folder", () => withFolder(config, (data) => checkAccounts(data, config.dataDir))],
      ["file rights", () => checkRights(config.dataDir)],
      ["disk space", () => checkDisk(config)],
      ["gateway", () => checkGateway(config)],
      ["webhook targets", () => withFolder(config, checkWebhooks)],
    ]
    : [["data folder", () => well(`there is no data in ${config.dataDir} yet`, NO_DATA)]];
  const checks: Check[] = [
    ["settings", () => checkSettings(config)],
    ...ofData,
    ["messaging network", () => checkReach(network)],
    ["web version", () => checkWebVersion(config)],
    ["clock", () => checkClock(network, systemClock)],
  ];
  const findings: Finding[] = [];
  for (const [check, look] of checks) {
    findings.push({ check, ...await foundBy(look) });
  }
  return findings;
}

async function foundBy(look: () => Found | Promise<Found>): Promise<Found> {
  try {
    return await look();
  } catch (error) {
    return bad(error instanceof Error ? error.message : String(error), "mend that first, then ask again");
  }
}

/** The answer; null when there is none in time. */
async function ask(url: string, method = "GET"): Promise<Response | null> {
  try {
    return await fetch(url, { method, signal: AbortSignal.timeout(ASK_TIMEOUT_MS) });
  } catch {
    return null;
  }
}

/** What commands read from the environment beside the settings. */
const OF_COMMANDS = ["PALOMA_API_KEY", "PALOMA_NEW_SECRET_KEY", "PALOMA_PASSPHRASE"];

function checkSettings({ host, publicUrl, trustedProxies }: Config): Found {
  const known = new Set<string>([...SETTINGS.map(({ env }) => env), ...OF_COMMANDS]);
  const unknown = Object.keys(Deno.env.toObject()).filter((name) => name.startsWith("PALOMA_") && !known.has(name));
  if (unknown.length > 0) {
    return bad(
      `of the environment, what is no setting is ignored: ${unknown.sort().join(", ")}`,
      "paloma serve --help",
    );
  }
  const open = host !== "127.0.0.1" && host !== "::1" && host !== "localhost";
  if (open && trustedProxies.length === 0) {
    return well(
      `can be used; other machines reach ${host} without TLS`,
      "put a proxy in front (docs/proxy.md), or leave PALOMA_HOST at 127.0.0.1",
    );
  }
  if (trustedProxies.length > 0 && publicUrl === null) {
    return well("can be used; links to media carry the gateway's own address", "set PALOMA_PUBLIC_URL to the proxy's");
  }
  return well("can be used");
}

/** Opens every account's key, to find one written with another secret key. */
async function checkAccounts(data: DataFolder, dataDir: string): Promise<Found> {
  const accounts = await data.accounts.list();
  for (const account of accounts) await data.accounts.apiKey(account.id);
  const count = `${accounts.length} account${accounts.length === 1 ? "" : "s"}, keys open`;
  return well(
    `${dataDir} can be read and written, ${count}`,
    accounts.length === 0 ? "paloma account create --name NAME --plan own" : null,
  );
}

/** Of the folder: its files are made private each time they are opened. */
async function checkRights(dataDir: string): Promise<Found> {
  const { mode } = await Deno.stat(dataDir);
  if (mode === null || (mode & OTHERS) === 0) return well("only the owner reads the data folder");
  return bad(`${dataDir} can be read by others, with the files in media/`, `chmod 700 ${dataDir}`);
}

function checkDisk({ dataDir, minFreeDisk }: Config): Found {
  const free = freeBytesOf(dataDir);
  const text = `${(free / 1e9).toFixed(1)} GB free, sends are refused below ${(minFreeDisk / 1e9).toFixed(2)} GB`;
  if (free < minFreeDisk) return bad(text, "make room, or lower PALOMA_MIN_FREE_DISK");
  return well(text, free < 4 * minFreeDisk ? "that is not much: make room before it is needed" : null);
}

async function checkGateway(config: Config): Promise<Found> {
  const { dataFolder } = await import("../app.ts");
  try {
    (await dataFolder.lock(config.dataDir)).release();
    return well("none runs on this folder", "paloma serve");
  } catch (error) {
    if (!(error instanceof AlreadyRunning)) throw error;
  }
  const url = `${localUrl(config)}/readyz`;
  const answer = await ask(url);
  await answer?.body?.cancel();
  if (answer?.status === 200) return well(`runs, ready at ${localUrl(config)}`);
  return bad(
    `runs on this folder, and ${url} ${answer === null ? "does not answer" : `answers ${answer.status}`}`,
    "is PALOMA_PORT the one that it was started with? Else its log says why it is not ready",
  );
}

/** What the running gateway announces, by its own metrics. */
async function checkWebVersion(config: Config): Promise<Found> {
  const metrics = await (await ask(`${localUrl(config)}/metrics`))?.text() ?? "";
  const metric = (name: string) => metrics.split("\n").find((line) => line.startsWith(name)) ?? "";
  const [, version, source] = /"([\d.]+) \(([^()"]+)\)"/.exec(metric("paloma_whatsapp_web_version{")) ?? [];
  if (version === undefined) return well("none is announced yet: no line of a running gateway has connected");
  const age = Number(metric("paloma_whatsapp_web_version_age_seconds ").split(" ")[1] ?? 0);
  const text = `${version}, ${source === "web.whatsapp.com" ? "from" : "by"} ${source}, for ${
    (age / HOUR_S).toFixed(1)
  } h`;
  if (source !== "built in" || config.whatsapp.url !== null) return well(text);
  return well(
    text,
    "web.whatsapp.com did not say a newer one: new links may be refused; PALOMA_WHATSAPP_VERSION sets it",
  );
}

async function checkReach(address: string): Promise<Found> {
  const url = new URL(address);
  const { host } = url;
  const trouble = await connectTo(url);
  if (trouble === null) return well(`${host} answers`);
  return bad(`${host} cannot be reached: ${trouble}`, "is there a firewall or no DNS? Lines need it at port 443");
}

/** Null when a connection was made, else why not. */
function connectTo(url: URL): Promise<string | null> {
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

/** Compares it with the date that the network's own web server gives. */
async function checkClock(address: string, clock: Clock): Promise<Found> {
  const url = address.replace(/^ws/, "http");
  const answer = await ask(url, "HEAD");
  await answer?.body?.cancel();
  const date = Date.parse(answer?.headers.get("date") ?? "");
  if (Number.isNaN(date)) return well("could not be compared: nobody said the time");
  const off = clock.now() - date;
  const text = `${(Math.abs(off) / 1000).toFixed(0)} s ${off < 0 ? "behind" : "ahead of"} the network`;
  if (Math.abs(off) <= CLOCK_MAY_BE_OFF_MS) return well(text);
  return bad(text, "set the clock (timedatectl set-ntp true): certificates and links are held against it");
}

/** Whether each webhook's host takes a connection; each host is asked once. */
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
    return well(targets.size === 0 ? "there are none" : `${targets.size} hosts take connections`);
  }
  return bad(`cannot be reached: ${silent.join(", ")}`, "events wait in the log; redeliver them when the host is back");
}
