/**
 * `paloma doctor`: checks for problems that keep a gateway from working, and suggests remedies. `--network` prints what
 * the lines met on the network instead, for a report to the developers.
 */
import type { Command } from "commander";
import { portOf } from "../base/addresses.ts";
import type { Config } from "../config.ts";
import { type Clock, systemClock } from "../runtime.ts";
import { SETTINGS } from "../settings.ts";
import { VERSION } from "../shipped.ts";
import { ask, bad, type Check, checksOfData, connectTo, type Found, well } from "./doctor_data.ts";
import { encountersOfDay } from "../whatsapp/encounters.ts";
import { hasData, withFolder } from "./data.ts";
import { Exit, print, printResult, table } from "./output.ts";
import { configOf, localUrl, withSettings } from "./settings.ts";

const DAY_S = 24 * 60 * 60;
/** WhatsApp accepts a version for four to five months. */
const VERSION_MAY_BE_DAYS = 60;
/** WhatsApp's certificates, media links and signatures are checked against the clock. */
const CLOCK_MAY_BE_OFF_MS = 60_000;
const REAL_NETWORK = "wss://web.whatsapp.com/ws/chat";

interface Finding extends Found {
  check: string;
}

export function addDoctorCommand(root: Command): void {
  withSettings(root.command("doctor").description("check for problems that keep the gateway from working"))
    .option("--network", "print what the lines met on WhatsApp's network in the last day, to paste into an issue")
    .option("--json", "print JSON")
    .action(async (options) => {
      if (options.network) return await reportNetwork(configOf(options), options);
      const findings = await examine(configOf(options));
      printResult(options, findings, () =>
        table(findings.flatMap(({ ok, check, detail, hint }) => [
          [ok ? "✓" : "✗", check, detail],
          ...(hint === null ? [] : [["", "", `→ ${hint}`]]),
        ])));
      const bad = findings.filter(({ ok }) => !ok).length;
      if (bad > 0) throw new Exit(1, `${bad} of ${findings.length} checks failed.`);
      if (options.json) return;
      const hints = findings.filter(({ hint }) => hint !== null).length;
      print(hints === 0 ? "All is well." : `Nothing is wrong; hints: ${hints}, marked by →.`);
    });
}

/** Names only: no numbers, texts, ids or keys. Throws StoreError. */
async function reportNetwork(config: Config, options: { json?: boolean }): Promise<void> {
  const encounters = await hasData(config)
    ? await withFolder(config, ({ kv }) => encountersOfDay(kv, systemClock.now()))
    : [];
  const { os, arch } = Deno.build;
  const report = { paloma: VERSION, runtime: `deno ${Deno.version.deno}, ${os} ${arch}`, encounters };
  printResult(options, report, () => {
    const rows = encounters.map(({ kind, name, count }) => [kind, name, String(count)]);
    const title = `Paloma ${report.paloma} (${report.runtime}), the network in the last 24 hours:`;
    return `${title}\n${rows.length > 0 ? table(rows) : "nothing"}`;
  });
}

/** Resolves to the findings of all checks; a check that throws has failed. */
async function examine(config: Config): Promise<Finding[]> {
  const network = config.whatsapp.url ?? REAL_NETWORK;
  const checks: Check[] = [
    ["settings", () => checkSettings(config)],
    ...await checksOfData(config),
    ["messaging network", () => checkReach(network)],
    ["web version", () => checkWebVersion(config)],
    ["clock", () => checkClock(network, systemClock)],
  ];
  const findings: Finding[] = [];
  for (const [check, look] of checks) findings.push({ check, ...await foundBy(look) });
  return findings;
}

async function foundBy(look: () => Found | Promise<Found>): Promise<Found> {
  try {
    return await look();
  } catch (error) {
    return bad(error instanceof Error ? error.message : String(error), "fix this first, then run the doctor again");
  }
}

/** Variables that Kubernetes sets for a service named paloma. */
const OF_SERVICE = /^PALOMA_(SERVICE|PORT)_/;
/** Variables that commands read in addition to the settings. */
const OF_COMMANDS = ["PALOMA_API_KEY", "PALOMA_NEW_SECRET_KEY", "PALOMA_PASSPHRASE"];

function checkSettings({ host, publicUrl, store, trustedProxies }: Config): Found {
  const known = new Set<string>([...SETTINGS.map(({ env }) => env), ...OF_COMMANDS]);
  const isUnknown = (name: string) => name.startsWith("PALOMA_") && !known.has(name) && !OF_SERVICE.test(name);
  const unknown = Object.keys(Deno.env.toObject()).filter(isUnknown);
  if (unknown.length > 0) {
    return bad(
      `unknown variables in the environment are ignored: ${unknown.sort().join(", ")}`,
      "paloma serve --help lists the settings",
    );
  }
  const open = host !== "127.0.0.1" && host !== "::1" && host !== "localhost";
  if (open && trustedProxies.length === 0) {
    return well(
      `valid; other machines can reach ${host} without TLS`,
      "put a proxy in front (docs/proxy.md), or leave PALOMA_HOST at 127.0.0.1",
    );
  }
  if (trustedProxies.length > 0 && publicUrl === null) {
    return well("valid; links to media carry the gateway's own address", "set PALOMA_PUBLIC_URL to the proxy's");
  }
  if (store !== null && publicUrl === null) {
    return well("valid; links to received files point to the worker, which serves none", "set PALOMA_PUBLIC_URL");
  }
  return well("valid");
}

/** Checks the WhatsApp Web version that the running gateway announces, according to its metrics. */
async function checkWebVersion(config: Config): Promise<Found> {
  const metrics = await (await ask(`${localUrl(config)}/metrics`))?.text() ?? "";
  const metric = (name: string) => metrics.split("\n").find((line) => line.startsWith(name)) ?? "";
  const [, version, source] = /"([\d.]+) \(([^()"]+)\)"/.exec(metric("paloma_whatsapp_web_version{")) ?? [];
  if (version === undefined) return well(`not known: the gateway at ${localUrl(config)} runs no line, or does not run`);
  const days = Number(metric("paloma_whatsapp_web_version_age_seconds ").split(" ")[1] ?? 0) / DAY_S;
  const isBuiltIn = source === "built in";
  const text = `${version}, ${source === "setting" || isBuiltIn ? source : `from ${source}`}, ${
    days.toFixed(1)
  } days old`;
  if (source === "setting" || !isBuiltIn && days <= VERSION_MAY_BE_DAYS) return well(text);
  return well(
    text,
    "WhatsApp refuses a version after some months, and no newer one could be fetched: " +
      "let the gateway reach web.whatsapp.com, update it, or set PALOMA_WHATSAPP_VERSION",
  );
}

async function checkReach(address: string): Promise<Found> {
  const url = new URL(address);
  const { host } = url;
  const trouble = await connectTo(url);
  if (trouble === null) return well(`${host} answers`);
  return bad(`${host} cannot be reached: ${trouble}`, `check firewall and DNS: lines need it on port ${portOf(url)}`);
}

/** Compares the clock with the date that the network's web server reports. */
async function checkClock(address: string, clock: Clock): Promise<Found> {
  const url = address.replace(/^ws/, "http");
  const answer = await ask(url, "HEAD");
  await answer?.body?.cancel();
  const date = Date.parse(answer?.headers.get("date") ?? "");
  if (Number.isNaN(date)) return well("could not be compared: the network reported no time");
  const off = clock.now() - date;
  const text = `${(Math.abs(off) / 1000).toFixed(0)} s ${off < 0 ? "behind" : "ahead of"} the network`;
  if (Math.abs(off) <= CLOCK_MAY_BE_OFF_MS) return well(text);
  return bad(text, "set the clock (timedatectl set-ntp true): certificates and links are checked against it");
}
