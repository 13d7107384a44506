/**
 * Idle lines: memory and connect time a line of the whole gateway, against bare Baileys with its keys in memory, on the
 * same simulated network and with the very same credentials. Each measurement is the slope between a process with few
 * lines and one with many, so that what a process costs by itself cancels out.
 */
import { startChild } from "./child.ts";
import { copyFolder, exportLines, makeLinkedFolder } from "./linked_folder.ts";
import { type Bench, medians, type Result } from "./measure.ts";
import { openSite } from "./network.ts";

/** Lines of the small process: enough for every code path to have run. */
const FEW = 10;

/** What a process with connected lines reports. */
export interface Connected {
  /** From the beginning until the last line was connected. */
  tookMs: number;
  /** Processor time of the process until then. */
  cpuMs: number;
  /** Resident memory when idle, after garbage collection, bytes. */
  bytes: number;
}

export const lines: Bench = {
  name: "lines",
  about: "memory and connect time of an idle line, against bare Baileys with keys in memory",
  async run({ rounds, lines: many, report }) {
    await using site = await openSite();
    const { root, network } = site;
    const folder = await makeLinkedFolder(site, { accounts: 1, lines: FEW + many });
    await exportLines(folder, root);
    report(`${FEW + many} lines linked`);

    const gateway = (dataDir: string, count: number) =>
      measure("./gateway_lines.ts", { settings: { ...folder.settings, PALOMA_DATA_DIR: dataDir }, lines: count });
    const baileys = (count: number) =>
      measure("./bare_lines.ts", { network: network.ready, folder: root, lines: count });
    const measured: { subject: Connected; raw: Connected }[] = [];
    for (let i = 0; i < rounds; i++) {
      const raw = slope(await baileys(FEW), await baileys(FEW + many), many);
      const copies = [await copyFolder(folder, root, FEW), await copyFolder(folder, root)] as const;
      const subject = slope(await gateway(copies[0], FEW), await gateway(copies[1], FEW + many), many);
      measured.push({ subject, raw });
      report(`round ${i + 1}: gateway ${shown(subject)}; bare Baileys ${shown(raw)}`);
    }
    return conclude(measured);
  },
};

async function measure(module: string, argument: unknown): Promise<Connected> {
  const child = await startChild<Connected>(module, argument);
  await child.stop();
  return child.ready;
}

/** What one more line costs. */
function slope(few: Connected, all: Connected, many: number): Connected {
  return {
    tookMs: (all.tookMs - few.tookMs) / many,
    cpuMs: (all.cpuMs - few.cpuMs) / many,
    bytes: (all.bytes - few.bytes) / many,
  };
}

function conclude(measured: readonly { subject: Connected; raw: Connected }[]): Result[] {
  const ratios = (of: keyof Connected) => measured.map(({ subject, raw }) => subject[of] / raw[of]);
  const detail = `${shown(medians(measured.map(({ subject }) => ({ ...subject }))))} against ${
    shown(medians(measured.map(({ raw }) => ({ ...raw }))))
  }`;
  return [
    { name: "memory a line / bare Baileys", ratios: ratios("bytes"), goal: { atMost: 0.9 }, detail },
    { name: "connect time a line / bare Baileys", ratios: ratios("tookMs"), goal: { atMost: 1.3 }, detail: "" },
    { name: "processor time to connect a line / bare Baileys", ratios: ratios("cpuMs"), goal: null, detail: "" },
  ];
}

function shown({ tookMs, cpuMs, bytes }: Connected): string {
  return `${(bytes / 2 ** 20).toFixed(2)} MiB, ${tookMs.toFixed(1)} ms (${cpuMs.toFixed(1)} ms of processor)`;
}
