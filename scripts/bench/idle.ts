/**
 * Idle lines: processor time of the whole gateway with connected lines while nothing happens, against bare Baileys with
 * as many, pinging as often, on the same simulated network.
 */
import process from "node:process";
import { sleep, systemClock } from "../../src/runtime.ts";
import { startChild } from "./child.ts";
import type { GatewayQuestion } from "./gateway_lines.ts";
import { copyFolder, exportLines, makeLinkedFolder } from "./linked_folder.ts";
import type { Connected } from "./lines.ts";
import { type Bench, median } from "./measure.ts";
import { openSite } from "./network.ts";
import { NO_CALLS, type StoreCalls } from "./watch_load.ts";

/** Until the after-effects of a start are over: garbage collection, and the first run of every sweep. */
const SETTLE_MS = 30_000;
/** Three pings of each line, and every sweep that runs each minute. */
const IDLE_MS = 60_000;

/** What a process did while it was idle. */
export interface Idle extends StoreCalls {
  /** Processor time. */
  cpuMs: number;
}

export const idle: Bench = {
  name: "idle",
  about: "processor time of connected lines while nothing happens, against bare Baileys",
  async run({ rounds, lines, report }) {
    await using site = await openSite();
    const { root, network } = site;
    const folder = await makeLinkedFolder(site, { accounts: 1, lines });
    await exportLines(folder, root);
    report(`${lines} lines linked`);
    const measured: { subject: Idle; raw: Idle }[] = [];
    for (let round = 1; round <= rounds; round++) {
      const raw = await resting("./bare_lines.ts", { network: network.ready, folder: root, lines });
      const settings = { ...folder.settings, PALOMA_DATA_DIR: await copyFolder(folder, root) };
      const subject = await resting("./gateway_lines.ts", { settings, lines });
      measured.push({ subject, raw });
      report(`round ${round}: gateway ${shown(subject)}; bare Baileys ${shown(raw)}`);
    }
    const ratios = measured.map(({ subject, raw }) => subject.cpuMs / raw.cpuMs);
    const detail = `${median(measured.map(({ subject }) => subject.cpuMs)).toFixed(0)} ms a minute`;
    return [{ name: `processor time of ${lines} idle lines / bare Baileys`, ratios, goal: { atMost: 1.2 }, detail }];
  },
};

async function resting(module: string, argument: unknown): Promise<Idle> {
  const child = await startChild<Connected>(module, argument);
  try {
    await sleep(systemClock, SETTLE_MS);
    const question: GatewayQuestion = { restMs: IDLE_MS };
    return await child.ask<Idle>(question);
  } finally {
    await child.stop();
  }
}

/** The child's side: what this process does within the given milliseconds. */
export async function rest(ms: number, storeCalls: () => StoreCalls = () => NO_CALLS): Promise<Idle> {
  const callsBefore = storeCalls();
  const before = process.cpuUsage();
  await sleep(systemClock, ms);
  const { user, system } = process.cpuUsage(before);
  const calls = storeCalls();
  return {
    cpuMs: (user + system) / 1000,
    reads: calls.reads - callsBefore.reads,
    flushes: calls.flushes - callsBefore.flushes,
    rows: calls.rows - callsBefore.rows,
  };
}

function shown({ cpuMs, reads, flushes }: Idle): string {
  return `${cpuMs.toFixed(0)} ms of processor, ${reads} reads, ${flushes} flushes`;
}
