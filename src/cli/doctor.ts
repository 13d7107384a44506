/** `paloma doctor`: looks for what keeps a gateway from working, and says what to do about it. */
import { statfsSync } from "node:fs";
import { connect } from "node:net";
import type { Command } from "commander";
import pino from "pino";
import type { Config } from "../config.ts";
import type { DataFolder } from "../data/data_folder.ts";
import { systemRuntime } from "../runtime.ts";
import { Exit, print, printResult, table } from "./output.ts";
import { configOf, withSettings } from "./settings.ts";

interface Finding {
  check: string;
  ok: boolean;
  detail: string;
}

const ENOUGH_DISK_BYTES = 1024 ** 3;
const CONNECT_TIMEOUT_MS = 5_000;
const REAL_NETWORK = "wss://web.whatsapp.com/ws/chat";

export function addDoctorCommand(root: Command): void {
  withSettings(root.command("doctor").description("look for what keeps the gateway from working"))
    .option("--json", "print JSON")
    .action(async (options) => {
      const findings = await examine(configOf(options));
      printResult(options, findings, () => table(findings.map((f) => [f.ok ? "✓" : "✗", f.check, f.detail])));
      const bad = findings.filter((finding) => !finding.ok).length;
      if (bad > 0) throw new Exit(1, `${bad} of ${findings.length} checks failed.`);
      if (!options.json) print("All is well.");
    });
}

async function examine(config: Config): Promise<Finding[]> {
  const findings: Finding[] = [{ check: "settings", ok: true, detail: "all can be used" }];
  findings.push(
    await finding("data folder", async () => {
      const { dataFolder } = await import("../app.ts");
      const data = await dataFolder.open(config, systemRuntime(pino({ level: "silent" })));
      try {
        return await describeData(data, config.dataDir);
      } finally {
        data.close();
      }
    }),
    await finding("disk space", () => {
      const { bavail, bsize } = statfsSync(config.dataDir);
      const free = bavail * bsize;
      const text = `${(free / 1024 ** 3).toFixed(1)} GiB free`;
      if (free < ENOUGH_DISK_BYTES) throw new Error(`${text}: make room, a full disk stops sending`);
      return text;
    }),
    await finding("messaging network", () => reach(config.whatsapp.url ?? REAL_NETWORK)),
  );
  return findings;
}

async function finding(check: string, look: () => string | Promise<string>): Promise<Finding> {
  try {
    return { check, ok: true, detail: await look() };
  } catch (error) {
    return { check, ok: false, detail: (error as Error).message };
  }
}

/** Opens every account's key: one that was written with another secret key, before that was noticed, shows here. */
async function describeData(data: DataFolder, dataDir: string): Promise<string> {
  const accounts = await data.accounts.list();
  for (const account of accounts) await data.accounts.apiKey(account.id);
  return `${dataDir} can be read and written, ${accounts.length} account${accounts.length === 1 ? "" : "s"}, keys open`;
}

function reach(address: string): Promise<string> {
  const url = new URL(address);
  const port = Number(url.port) || (url.protocol === "wss:" ? 443 : 80);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname, port, timeout: CONNECT_TIMEOUT_MS });
    const end = (outcome: () => void) => {
      socket.destroy();
      outcome();
    };
    socket.once("connect", () => end(() => resolve(`${url.host} answers`)));
    socket.once(
      "timeout",
      () => end(() => reject(new Error(`${url.host} does not answer; is a firewall in between?`))),
    );
    socket.once("error", (error) => end(() => reject(new Error(`${url.host} cannot be reached: ${error.message}`))));
  });
}
