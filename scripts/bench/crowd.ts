/**
 * Many lines in one process: what connecting, resting, sending and receiving cost with a tenth of them, with two fifths
 * and with all, how late the event loop comes meanwhile, and how long a text takes. Beside it bare Baileys with as many
 * lines that sends the same; and each figure against the one with a tenth: where it grows, something grows with the lines.
 */
import { httpClient } from "../../src/cli/client.ts";
import { sleep, systemClock } from "../../src/runtime.ts";
import type { BareSender } from "./bare_sender.ts";
import { startChild } from "./child.ts";
import type { CrowdClient, Delays, Traffic } from "./crowd_client.ts";
import type { GatewayReady } from "./gateway.ts";
import type { GatewayLines, GatewayQuestion } from "./gateway_lines.ts";
import type { Idle } from "./idle.ts";
import type { Connected } from "./lines.ts";
import { copyFolder, exportLines, type LinkedFolder, makeLinkedFolder, newPhones } from "./linked_folder.ts";
import { type Bench, median, type Result } from "./measure.ts";
import { openSite, type Site } from "./network.ts";
import { TEXT } from "./sends.ts";
import type { GatewayLoad } from "./watch_load.ts";
import type { Sends, Sent } from "./way.ts";

/** Parts of the lines that are measured. */
const PARTS = [0.1, 0.4, 1];
/** Whom each line writes to, and who writes to it. */
const FRIENDS = 2;
/** Texts of each line that are sent at once. */
const TEXTS = 10;
/** Texts to each line. */
const RECEIVED = 4;
const CLIENTS = 64;
/** Texts of friends on their way at a time. */
const FRIENDS_AT_ONCE = 16;
/** At a steady pace a line sends one in this time. */
const EVERY_MS = 4_000;
const STEADY_MS = 16_000;
/** Until the after-effects of a start are over. */
const SETTLE_MS = 15_000;
const IDLE_MS = 15_000;
/** How long the event loop of the idle gateway is watched, which costs processor time. */
const WATCHED_MS = 10_000;

/** What traffic was like: for its client, and for the gateway. */
type Passed = Delays & GatewayLoad & { count: number };

interface Measured {
  lines: number;
  connected: Connected;
  idle: Idle;
  watched: GatewayLoad;
  flood: Passed;
  steady: Passed;
  received: Passed;
  bare: Sent;
}

interface Stage extends Pick<Site, "root" | "network"> {
  folder: LinkedFolder;
  report: (line: string) => void;
}

export const crowd: Bench = {
  name: "crowd",
  about: "many lines in one process: connect, rest, send, receive, lateness; against bare Baileys and a tenth of them",
  async run({ rounds, lines, report }) {
    await using site = await openSite();
    const began = performance.now();
    const folder = await makeLinkedFolder(site, { accounts: 1, lines });
    await exportLines(folder, site.root);
    report(`${lines} lines linked in ${seconds(performance.now() - began)}`);
    const stage: Stage = { ...site, folder, report };
    const sizes = [...new Set(PARTS.map((part) => Math.ceil(part * lines)))];
    const measured: Measured[][] = [];
    for (let round = 1; round <= rounds; round++) {
      const sizesOfRound: Measured[] = [];
      for (const size of sizes) {
        report(`round ${round}, ${size} lines:`);
        sizesOfRound.push({ ...await measureGateway(stage, size), bare: await measureBare(stage, size) });
      }
      measured.push(sizesOfRound);
    }
    return conclude(measured);
  },
};

async function measureGateway(
  { root, network, folder, report }: Stage,
  lines: number,
): Promise<Omit<Measured, "bare">> {
  const dataDir = await copyFolder(folder, root, lines);
  const start: GatewayLines = { settings: { ...folder.settings, PALOMA_DATA_DIR: dataDir }, lines };
  const gateway = await startChild<Connected & GatewayReady>("./gateway_lines.ts", start);
  const ask = <Answer>(question: GatewayQuestion) => gateway.ask<Answer>(question);
  const connected = gateway.ready;
  report(
    `  connected after ${seconds(connected.tookMs)} and ${seconds(connected.cpuMs)} of processor, ${
      (connected.bytes / 2 ** 20).toFixed(0)
    } MiB`,
  );

  await sleep(systemClock, SETTLE_MS);
  const idle = await ask<Idle>({ restMs: IDLE_MS });
  await ask<GatewayLoad>(null);
  await sleep(systemClock, WATCHED_MS);
  const watched = await ask<GatewayLoad>(null);
  report(
    `  idle: ${
      (idle.cpuMs / IDLE_MS * 60_000).toFixed(0)
    } ms of processor a minute, ${idle.reads} reads and ${idle.flushes} flushes in ${seconds(IDLE_MS)}; ${
      late(watched)
    }`,
  );

  const { apiKey } = folder.accounts[0]!;
  const baseUrl = `${gateway.ready.url}/v1`;
  const clientOf: CrowdClient = { baseUrl, apiKey, controlUrl: network.ready.controlUrl };
  const client = await startChild<true>("./crowd_client.ts", clientOf);
  const { data } = await httpClient(baseUrl, { "x-api-key": apiKey }).call("GET", "/sessions");
  const common = {
    lines: data.map(({ _id, phone }: { _id: string; phone: string }) => ({ sessionId: _id, phone })),
    friends: await newPhones(network, FRIENDS),
  };
  async function pass(name: string, traffic: Omit<Traffic, keyof typeof common>): Promise<Passed> {
    await ask<GatewayLoad>(null);
    const delays = await client.ask<Delays>({ ...common, ...traffic } satisfies Traffic);
    const passed = { ...delays, ...await ask<GatewayLoad>(null), count: traffic.count };
    report(`  ${name}: ${inWords(passed)}`);
    return passed;
  }
  const out = { direction: "out", atOnce: CLIENTS, until: "answer", perSecond: null } as const;
  const into = { direction: "in", atOnce: FRIENDS_AT_ONCE, until: "event", perSecond: null } as const;
  // The first text to or from a friend starts a Signal session, and code warms up.
  await pass("first texts", { ...out, count: lines * FRIENDS });
  await pass("first received", { ...into, count: lines * FRIENDS });
  const flood = await pass("sent at once", { ...out, count: lines * TEXTS });
  const perSecond = lines * 1000 / EVERY_MS;
  const steady = await pass(`sent, ${perSecond.toFixed(0)}/s`, {
    ...out,
    count: Math.ceil(perSecond * STEADY_MS / 1000),
    perSecond,
  });
  const received = await pass("received", { ...into, count: lines * RECEIVED });
  await client.stop();
  await gateway.stop();
  await Deno.remove(dataDir, { recursive: true });
  return { lines, connected, idle, watched, flood, steady, received };
}

async function measureBare({ root, network, report }: Stage, lines: number): Promise<Sent> {
  const bare: BareSender = { network: network.ready, folder: root, lines, path: null, inTurn: false };
  const sender = await startChild<true>("./bare_sender.ts", bare);
  const sends = { to: await newPhones(network, FRIENDS), atOnce: CLIENTS, text: TEXT };
  await sender.ask<Sent>({ ...sends, count: lines * FRIENDS } satisfies Sends);
  const sent = await sender.ask<Sent>({ ...sends, count: lines * TEXTS } satisfies Sends);
  await sender.stop();
  const count = lines * TEXTS;
  report(`  bare Baileys: ${perSecondOf(sent, count)}/s, ${(sent.usedMs / count).toFixed(2)} ms of processor a text`);
  return sent;
}

function conclude(rounds: readonly (readonly Measured[])[]): Result[] {
  const sizes = rounds[0]!.map(({ lines }) => lines);
  const [few] = sizes;
  const figures: { name: string; of: (measured: Measured) => number; unit: string }[] = [
    { name: "processor time to connect a line", of: (m) => m.connected.cpuMs / m.lines, unit: "ms" },
    {
      name: "processor time of an idle line",
      of: (m) => m.idle.cpuMs / m.lines / IDLE_MS * 60_000,
      unit: "ms a minute",
    },
    { name: "processor time a text", of: (m) => m.flood.usedMs / m.flood.count, unit: "ms" },
    { name: "processor time a text at a steady pace", of: (m) => m.steady.usedMs / m.steady.count, unit: "ms" },
    { name: "processor time a text received", of: (m) => m.received.usedMs / m.received.count, unit: "ms" },
  ];
  const bare = sizes.map((lines, i): Result => ({
    name: `processor time a text, ${lines} lines / bare Baileys`,
    ratios: rounds.map((round) => round[i]!.flood.usedMs / round[i]!.bare.usedMs),
    goal: null,
    detail: "",
  }));
  const growing = figures.flatMap(({ name, of, unit }) =>
    sizes.slice(1).map((lines, i): Result => ({
      name: `${name}, ${lines} lines / ${few}`,
      ratios: rounds.map((round) => of(round[i + 1]!) / of(round[0]!)),
      goal: null,
      detail: `${median(rounds.map((round) => of(round[i + 1]!))).toFixed(2)} ${unit} against ${
        median(rounds.map((round) => of(round[0]!))).toFixed(2)
      }`,
    }))
  );
  return [...bare, ...growing];
}

function inWords(passed: Passed): string {
  const { count, usedMs, reads, flushes, answer, sent, event, missing } = passed;
  return [
    `${count} texts, ${perSecondOf(passed, count)}/s`,
    `${(usedMs / count).toFixed(2)} ms of processor, ${(reads / count).toFixed(1)} reads and ${
      (flushes / count).toFixed(2)
    } flushes each`,
    `answered after ${shown(answer)}, sent ${shown(sent)}, event ${shown(event)} ms (p50, p99)`,
    late(passed),
    ...(missing > 0 ? [`${missing} WITHOUT AN EVENT`] : []),
  ].join("; ");
}

function late({ lateP50, lateP99, heldMs, turnMs }: GatewayLoad): string {
  return `event loop late ${shown({ p50: lateP50, p99: lateP99 })} ms, held ${heldMs.toFixed(0)}, at most ${
    turnMs.toFixed(0)
  }`;
}

function shown({ p50, p99 }: Delays["answer"]): string {
  return `${p50.toFixed(1)}, ${p99.toFixed(1)}`;
}

function perSecondOf({ tookMs }: { tookMs: number }, count: number): string {
  return (count / tookMs * 1000).toFixed(0);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
