/**
 * The way of a message, from its request to the webhook that says `sent`: processor time and pace of one line without
 * pauses, against bare Baileys with its keys in memory that writes the same texts and awaits their acks. It stores
 * nothing and answers nobody; the second baseline first writes one raw commit per message, and the third also waits for
 * the ack of the message before, as a line has to. Also what the gateway asks of its store per message, over one line and
 * over several.
 */
import { join } from "node:path";
import { httpClient, until } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import type { BareSender } from "./bare_sender.ts";
import { type Child, startChild } from "./child.ts";
import { copyFolder, exportLines, type LinkedFolder, makeLinkedFolder, newPhones } from "./linked_folder.ts";
import { type Bench, median, medians, percentile, type Result } from "./measure.ts";
import { type NetworkReady, openSite, type Site } from "./network.ts";
import type { Arrivals, ArrivalsWanted, ReceiverReady } from "./receiver.ts";
import { recipientOf, TEXT } from "./sends.ts";
import { type Serve, serveCounted } from "./served.ts";
import { type GatewayUse, useInWords } from "./watch_load.ts";

const COUNT = 1_000;
const AT_ONCE = 16;
const RECIPIENTS = 10;
/** Messages one at a time, to see how long one takes by itself. */
const ALONE = 100;
/**
 * Not counted: the first to each recipient start a Signal session, and V8 compiles what runs often. Of the gateway, which
 * has more of that, the first thousand messages take up to a half more than those that follow.
 */
const WARM = 1_000;

/** What a process is asked to send. */
export interface Sends {
  /** Recipients, used in turn. */
  to: readonly string[];
  count: number;
  atOnce: number;
  text: string;
}

export interface Sent {
  /** Processor time of the process. */
  usedMs: number;
  /** From the first send to the last ack. */
  tookMs: number;
}

/** What else the gateway does for these messages, and how long its users wait, ms. */
interface Way extends Sent, GatewayUse {
  /** Of a request's answer, with all clients at once. */
  answerP50: number;
  answerP99: number;
  /** Whole milliseconds from a request to its frame at the network's server, one message at a time; null over many lines. */
  departureP50: number | null;
  /** Of messages one at a time. */
  alone: GatewayUse;
}

export const way: Bench = {
  name: "way",
  about: `${COUNT} texts on one line, from request to webhook, against bare Baileys with keys in memory`,
  async run({ rounds, lines, report }) {
    await using site = await openSite();
    await using receiver = await startChild<ReceiverReady>("./receiver.ts", null);
    const folder = await makeLinkedFolder(site, { accounts: 1, lines: 1 });
    await exportLines(folder, site.root);
    const stage: Stage = { ...site, receiver, folder };
    const measured: Round[] = [];
    for (let i = 0; i < rounds; i++) {
      const round: Round = {
        bare: await measureBare(stage, { path: null, inTurn: false }),
        raw: await measureBare(stage, { path: join(site.root, `raw-${i}.db`), inTurn: false }),
        turn: await measureBare(stage, { path: join(site.root, `turn-${i}.db`), inTurn: true }),
        gateway: await measureSending(stage, { over: 1 }),
      };
      measured.push(round);
      const shown = Object.entries(round).map(([name, sent]) => `${name} ${inWords(sent)}`);
      report(
        `round ${i + 1}: ${shown.join("; ")}; ${callsInWords(round.gateway, 1)}; ${waitsInWords(round.gateway)}`,
      );
    }
    const many = await makeLinkedFolder(site, { accounts: 1, lines });
    for (const over of new Set([Math.min(10, lines), lines])) {
      report(callsInWords(await measureSending({ ...stage, folder: many }, { over }), over));
    }
    return conclude(measured);
  },
};

interface Stage extends Pick<Site, "root" | "network"> {
  receiver: Child<ReceiverReady>;
  folder: LinkedFolder;
}

type Round = Record<"bare" | "raw" | "turn", Sent> & { gateway: Way };

function conclude(measured: readonly Round[]): Result[] {
  const ratios = (of: keyof Sent, to: keyof Round) => measured.map((round) => round.gateway[of] / round[to][of]);
  const middle = (name: keyof Round) =>
    inWords(medians(measured.map(({ [name]: { usedMs, tookMs } }) => ({ usedMs, tookMs }))));
  return [
    {
      name: "processor time a message / bare Baileys",
      ratios: ratios("usedMs", "bare"),
      goal: { atMost: 1.5 },
      detail: `${middle("gateway")} against ${middle("bare")}`,
    },
    {
      name: "processor time a message / bare Baileys and a raw commit",
      ratios: ratios("usedMs", "raw"),
      goal: null,
      detail: `against ${middle("raw")}`,
    },
    {
      name: "processor time a message / the same, one at a time",
      ratios: ratios("usedMs", "turn"),
      goal: null,
      detail: `against ${middle("turn")}`,
    },
    {
      name: "messages a second of one line / bare Baileys",
      ratios: ratios("tookMs", "bare").map((ratio) => 1 / ratio),
      goal: { atLeast: 0.8 },
      detail: "",
    },
    {
      name: "messages a second of one line / a raw commit, one at a time",
      ratios: ratios("tookMs", "turn").map((ratio) => 1 / ratio),
      goal: null,
      detail: "",
    },
  ];
}

function inWords({ usedMs, tookMs }: Sent): string {
  return `${(usedMs / COUNT).toFixed(2)} ms of processor a message, ${(COUNT / tookMs * 1000).toFixed(0)}/s`;
}

function callsInWords(use: GatewayUse, lines: number): string {
  return `over ${lines} lines ${useInWords(use, COUNT)}`;
}

function waitsInWords({ answerP50, answerP99, departureP50, alone }: Way): string {
  return `answers after ${answerP50.toFixed(1)} ms, p99 ${
    answerP99.toFixed(1)
  }, at the network after ${departureP50} ms; one at a time ${useInWords(alone, ALONE)}`;
}

async function measureBare(
  { root, network }: Stage,
  baseline: Pick<BareSender, "path" | "inTurn">,
): Promise<Sent> {
  const sender = await startChild<true>("./bare_sender.ts", {
    network: network.ready,
    folder: root,
    lines: 1,
    ...baseline,
  });
  const sends = { to: await newPhones(network, RECIPIENTS), atOnce: AT_ONCE, text: TEXT };
  await sender.ask<Sent>({ ...sends, count: WARM });
  const sent = await sender.ask<Sent>({ ...sends, count: COUNT });
  await sender.stop();
  return sent;
}

/** `over`: how many of the folder's lines the texts are spread over. */
export async function measureSending(
  { root, network, receiver, folder }: Stage,
  { over, serve = serveCounted }: { over: number; serve?: Serve },
): Promise<Way> {
  const dataDir = await copyFolder(folder, root);
  const settings = { ...folder.settings, PALOMA_DATA_DIR: dataDir, PALOMA_OUTBOUND_ALLOW: "127.0.0.1" };
  const gateway = await serve(settings);
  const { apiKey, sessionIds } = folder.accounts[0]!;
  const api = httpClient(`${gateway.url}/v1`, { "x-api-key": apiKey });
  await api.call("POST", "/webhooks", { url: receiver.ready.url, events: ["message.sent"] });
  for (const sessionId of sessionIds) {
    await until(systemClock, async () => {
      const { data } = await api.call("GET", `/sessions/${sessionId}/status`);
      return data.status === "connected" || null;
    }, { what: "the lines to connect" });
  }

  const to = await newPhones(network, RECIPIENTS);
  /** Resolves to how long each answer took. */
  async function send(count: number, atOnce: number): Promise<number[]> {
    const answers: number[] = [];
    let next = 0;
    await Promise.all(Array.from({ length: atOnce }, async () => {
      while (next < count) {
        const i = next++;
        const sessionId = sessionIds[i % over];
        const number = recipientOf(i, { lines: over, to });
        const asked = performance.now();
        await api.call("POST", "/messages/send/text", { sessionId, to: number, text: TEXT });
        answers.push(performance.now() - asked);
      }
    }));
    const wanted: ArrivalsWanted = { count };
    await receiver.ask<Arrivals>(wanted);
    return answers;
  }
  await send(Math.max(WARM, over * RECIPIENTS), AT_ONCE);
  await gateway.use();
  const began = performance.now();
  const answers = await send(COUNT, AT_ONCE);
  const tookMs = performance.now() - began;
  const use = await gateway.use();

  const departureP50 = over > 1 ? null : await departureAlone(network, () => send(1, 1));
  const alone = await gateway.use();
  await gateway.stop();
  await Deno.remove(dataDir, { recursive: true });
  return {
    ...use,
    tookMs,
    answerP50: median(answers),
    answerP99: percentile(answers, 99),
    departureP50,
    alone,
  };
}

/** The median of how long a message that is `sent` alone takes to the network's server. */
async function departureAlone(network: Child<NetworkReady>, sent: () => Promise<unknown>): Promise<number> {
  const asked: number[] = [];
  for (let i = 0; i < ALONE; i++) {
    asked.push(Date.now());
    await sent();
  }
  const wire: { time: number; retry?: true }[] = await httpClient(network.ready.controlUrl).call("GET", "/wire");
  return median(wire.filter(({ retry }) => !retry).slice(-ALONE).map(({ time }, i) => time - asked[i]!));
}
