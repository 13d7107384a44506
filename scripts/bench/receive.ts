/**
 * The way of a text from a phone to the webhook that tells of it: how late it comes and what it costs, at a steady pace and
 * in a burst, against bare Baileys with its keys in memory that posts each text and keeps nothing; the second baseline
 * first writes one raw commit a text. Also what the gateway asks of its store and writes to the disk for each.
 */
import { join } from "node:path";
import { httpClient, until } from "../../src/cli/client.ts";
import { sleep, systemClock } from "../../src/runtime.ts";
import type { BareReceiver, BareUse } from "./bare_receiver.ts";
import { type Child, startChild, wallClock } from "./child.ts";
import { copyFolder, exportLines, type LinkedFolder, makeLinkedFolder, newPhones } from "./linked_folder.ts";
import { readBareLines } from "./bare_lines.ts";
import { type Bench, median, percentile, type Result } from "./measure.ts";
import { openSite, type Site } from "./network.ts";
import type { Arrivals, ArrivalsWanted, ReceiverReady } from "./receiver.ts";
import { TEXT } from "./sends.ts";
import { serveCounted } from "./served.ts";
import { type GatewayUse, useInWords } from "./watch_load.ts";

const COUNT = 1_000;
const PER_SECOND = 50;
/** Texts of a burst that phones write at the same time. */
const AT_ONCE = 16;
const FRIENDS = 10;
/** Not counted: Signal sessions begin, and V8 compiles what runs often. */
const WARM = 1_000;

/** Texts a second; null: as many as can. */
const PACES = { paced: PER_SECOND, burst: null };

interface Received {
  /** Processor time of the process, all texts together. */
  usedMs: number;
  /** From the first that was written to the last that arrived. */
  tookMs: number;
  /** From when a phone was asked to write until the webhook came. */
  p50: number;
  p99: number;
}

type Round = Record<keyof typeof PACES, { bare: Received; raw: Received; gateway: Received & GatewayUse }>;

export const receive: Bench = {
  name: "receive",
  about: `${COUNT} texts from phone to webhook, ${PER_SECOND} a second and in a burst, against bare Baileys that posts`,
  async run({ rounds, report }) {
    await using site = await openSite();
    await using receiver = await startChild<ReceiverReady>("./receiver.ts", null);
    const folder = await makeLinkedFolder(site, { accounts: 1, lines: 1 });
    await exportLines(folder, site.root);
    const stage: Stage = { ...site, receiver, folder };
    const measured: Round[] = [];
    for (let i = 0; i < rounds; i++) {
      const bare = await measureBare(stage, null);
      const raw = await measureBare(stage, join(site.root, `raw-${i}.db`));
      const gateway = await measureReceiving(stage);
      const round: Round = {
        paced: { bare: bare.paced, raw: raw.paced, gateway: gateway.paced },
        burst: { bare: bare.burst, raw: raw.burst, gateway: gateway.burst },
      };
      measured.push(round);
      for (const [name, { bare, raw, gateway }] of Object.entries(round)) {
        report(`round ${i + 1}, ${name}: bare ${inWords(bare)}; with a raw commit ${inWords(raw)}`);
        report(`round ${i + 1}, ${name}: gateway ${inWords(gateway)}, ${useInWords(gateway, COUNT)}`);
      }
    }
    return (["paced", "burst"] as const).flatMap((pace) => conclude(pace, measured.map((round) => round[pace])));
  },
};

interface Stage extends Pick<Site, "root" | "network"> {
  receiver: Child<ReceiverReady>;
  folder: LinkedFolder;
}

function conclude(pace: keyof typeof PACES, rounds: readonly Round["paced"][]): Result[] {
  const ratios = (of: keyof Received, to: "bare" | "raw" = "bare") =>
    rounds.map((round) => round.gateway[of] / round[to][of]);
  const detail = (of: keyof Received, unit: string, per = 1) =>
    (["gateway", "bare"] as const)
      .map((name) => `${(median(rounds.map((round) => round[name][of])) / per).toFixed(2)} ${unit}`).join(" against ");
  const results: Result[] = [
    {
      name: `${pace}: processor time a text`,
      ratios: ratios("usedMs"),
      goal: { atMost: 2 },
      detail: detail("usedMs", "ms", COUNT),
    },
    {
      name: `${pace}: processor time a text / bare and a raw commit`,
      ratios: ratios("usedMs", "raw"),
      goal: null,
      detail: `against ${(median(rounds.map(({ raw }) => raw.usedMs)) / COUNT).toFixed(2)} ms`,
    },
    { name: `${pace}: phone to webhook, p50`, ratios: ratios("p50"), goal: null, detail: detail("p50", "ms") },
    { name: `${pace}: phone to webhook, p99`, ratios: ratios("p99"), goal: null, detail: detail("p99", "ms") },
  ];
  if (PACES[pace] !== null) return results;
  const rates = ratios("tookMs").map((ratio) => 1 / ratio);
  return [...results, {
    name: `${pace}: texts a second`,
    ratios: rates,
    goal: { atLeast: 0.9 },
    detail: detail("tookMs", "ms in all"),
  }];
}

function inWords({ usedMs, tookMs, p50, p99 }: Received): string {
  return `${(usedMs / COUNT).toFixed(2)} ms of processor a text, ${(COUNT / tookMs * 1000).toFixed(0)}/s, after ${
    p50.toFixed(1)
  } ms, p99 ${p99.toFixed(0)}`;
}

async function measureBare(stage: Stage, path: string | null): Promise<Taken<BareUse>> {
  const { root, network, receiver } = stage;
  const given: BareReceiver = { network: network.ready, folder: root, url: receiver.ready.url, path };
  const bare = await startChild<true>("./bare_receiver.ts", given);
  const taken = await takeAll(stage, {
    line: (await readBareLines(root, 1))[0]!.creds.me!.id.split(":")[0]!,
    use: () => bare.ask<BareUse>(null),
    textsOf: (at) => Promise.resolve(new Map(Object.entries(at))),
  });
  await bare.stop();
  return taken;
}

export async function measureReceiving(stage: Stage, serve = serveCounted): Promise<Taken<GatewayUse>> {
  const { root, receiver, folder } = stage;
  const dataDir = await copyFolder(folder, root);
  const settings = { ...folder.settings, PALOMA_DATA_DIR: dataDir, PALOMA_OUTBOUND_ALLOW: "127.0.0.1" };
  const gateway = await serve(settings);
  const { apiKey, sessionIds: [sessionId] } = folder.accounts[0]!;
  const api = httpClient(`${gateway.url}/v1`, { "x-api-key": apiKey });
  await api.call("POST", "/webhooks", { url: receiver.ready.url, events: ["message.received"] });
  const line = await until(systemClock, async () => {
    const { data } = await api.call("GET", `/sessions/${sessionId}/status`);
    return data.status === "connected" ? data.phone as string : null;
  }, { what: "the line to connect" });
  let after = "";
  const taken = await takeAll(stage, {
    line,
    use: gateway.use,
    async textsOf(at) {
      const texts = new Map<string, number>();
      while (texts.size < Object.keys(at).length) {
        const { data, next } = await api.call("GET", `/events?types=message.received&limit=100${after}`);
        for (const event of data) texts.set(event.data.text, at[event.id]!);
        after = `&after=${next ?? data.at(-1).id}`;
      }
      return texts;
    },
  });
  await gateway.stop();
  await Deno.remove(dataDir, { recursive: true });
  return taken;
}

type Taken<Use> = Record<keyof typeof PACES, Received & Use>;

interface Subject<Use> {
  /** The number of the line that they write to. */
  line: string;
  /** What the process has used since it was last asked. */
  use(): Promise<Use>;
  /** When each text came, by the deliveries' ids. */
  textsOf(at: Arrivals["at"]): Promise<Map<string, number>>;
}

async function takeAll<Use extends BareUse>(
  { network, receiver }: Stage,
  { line, use, textsOf }: Subject<Use>,
): Promise<Taken<Use>> {
  const control = httpClient(network.ready.controlUrl);
  const friends = await newPhones(network, FRIENDS);
  /** Lets phones write; resolves to how long each text took. */
  async function take(count: number, perSecond: number | null): Promise<Pick<Received, "tookMs" | "p50" | "p99">> {
    const written = new Map<string, number>();
    const began = wallClock();
    let next = 0;
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      while (next < count) {
        const i = next++;
        const due = perSecond === null ? wallClock() : began + i * 1000 / perSecond;
        await sleep(systemClock, Math.max(0, due - wallClock()));
        const text = `${i} ${TEXT}`;
        written.set(text, wallClock());
        await control.call("POST", `/phones/${friends[i % FRIENDS]}/messages`, { to: line, text });
      }
    }));
    const { at } = await receiver.ask<Arrivals>({ count } satisfies ArrivalsWanted);
    const texts = await textsOf(at);
    const delays = [...written].map(([text, writtenAt]) => texts.get(text)! - writtenAt);
    return { tookMs: Math.max(...texts.values()) - began, p50: median(delays), p99: percentile(delays, 99) };
  }
  await take(WARM, null);
  const measure = async (perSecond: number | null) => {
    await use();
    const taken = await take(COUNT, perSecond);
    return { ...taken, ...await use() };
  };
  return { paced: await measure(PACES.paced), burst: await measure(PACES.burst) };
}
