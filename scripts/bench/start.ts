/**
 * From the start of a process to its first 200, with an empty data folder, and what it keeps without lines: the gateway
 * from source and, where `dist/paloma` is there, the executable, against bare Hono with a store.
 */
import { fileURLToPath } from "node:url";
import { type FirstResponse, firstResponse } from "./first_response.ts";
import { type Bench, median, medians, type Result } from "./measure.ts";

/** Until the garbage of the start has been collected. */
const REST_MS = 3_000;
const EXECUTABLE = pathOf("../../dist/paloma");

export const start: Bench = {
  name: "start",
  about: "the first 200 of a new gateway and its memory without lines, against bare Hono with a store",
  async run({ rounds, report }) {
    const subjects = await serverPrograms();
    const bare = source("./bare_start.ts");
    // The first start of a program fills the runtime's caches.
    for (const each of [bare, ...Object.values(subjects)]) await firstResponse({ ...each, restMs: 0 });

    const measured: Record<string, { subject: FirstResponse; raw: FirstResponse }[]> = {};
    for (let round = 1; round <= rounds; round++) {
      const raw = await firstResponse({ ...bare, restMs: REST_MS });
      report(`round ${round}: bare Hono ${shown(raw)}`);
      for (const [name, each] of Object.entries(subjects)) {
        const subject = await firstResponse({ ...each, restMs: REST_MS });
        report(`round ${round}: ${name} ${shown(subject)}`);
        (measured[name] ??= []).push({ subject, raw });
      }
    }
    return Object.entries(measured).flatMap(([name, rounds]) => conclude(name, rounds));
  },
};

function conclude(name: string, rounds: readonly { subject: FirstResponse; raw: FirstResponse }[]): Result[] {
  const ratios = (of: keyof FirstResponse) => rounds.map(({ subject, raw }) => subject[of] / raw[of]);
  const subject = medians(rounds.map(({ subject }) => ({ ...subject })));
  const raw = medians(rounds.map(({ raw }) => ({ ...raw })));
  return [
    {
      name: `first 200, ${name} / bare Hono with a store`,
      ratios: ratios("tookMs"),
      goal: { atMost: 3 },
      detail: `${shown(subject)} against ${shown(raw)}`,
    },
    { name: `processor time until then, ${name} / bare`, ratios: ratios("cpuMs"), goal: null, detail: "" },
    {
      name: `resident without lines, ${name} / 100 MB`,
      ratios: rounds.map(({ subject }) => subject.bytes / 100e6),
      goal: { atMost: 1 },
      detail: `bare ${inMegabytes(median(rounds.map(({ raw }) => raw.bytes)))}`,
    },
  ];
}

/** A server: its command, with `serve` as the last argument. */
export interface Program {
  command: string;
  args: string[];
}

/** How the gateway is served: from source and, where it is there, by the executable. */
export async function serverPrograms(): Promise<{ source: Program; executable?: Program }> {
  return {
    source: source("../../main.ts", "serve"),
    ...(await isThere(EXECUTABLE) ? { executable: { command: EXECUTABLE, args: ["serve"] } } : {}),
  };
}

function source(module: string, ...args: string[]): Program {
  return { command: Deno.execPath(), args: ["run", "--allow-all", "--no-check", pathOf(module), ...args] };
}

function pathOf(module: string): string {
  return fileURLToPath(new URL(module, import.meta.url));
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

function shown({ tookMs, cpuMs, bytes, apiMs, apiBytes }: FirstResponse): string {
  return `${tookMs.toFixed(0)} ms (${cpuMs.toFixed(0)} ms of processor), ${
    inMegabytes(bytes)
  }; first request of the API ${apiMs.toFixed(0)} ms, then ${inMegabytes(apiBytes)}`;
}

function inMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}
