/**
 * A quiet account beside ten kinds of noise that another account makes on the same gateway: how long its messages take to
 * be accepted, to be sent and to reach its webhook, against the same without the noise, measured just before.
 *
 * The noise takes processor time from the whole machine, whichever gateway it is for. So it is also made at a gateway of
 * its own, measured just after: what is left beside that is what the two accounts' sharing a gateway costs.
 */
import { openData } from "../../src/engines.ts";
import { httpClient } from "../../src/cli/client.ts";
import { makeLog } from "../../src/ops/log.ts";
import { sleep, systemClock, systemRuntime } from "../../src/runtime.ts";
import { type Child, startChild } from "./child.ts";
import type { GatewayReady } from "./gateway.ts";
import { type LinkedAccount, type LinkedFolder, makeLinkedFolder } from "./linked_folder.ts";
import { type Bench, percentile, type Result, rowOf } from "./measure.ts";
import { openSite, type Site } from "./network.ts";
import { type NoiseAnswer, type NoiseName, type NoiseQuestion, NOISES, type NoiseSetting } from "./noise.ts";
import type { GatewayLoad } from "./watch_load.ts";
import type { QuietAccount, QuietQuestion, QuietReady, QuietTimes } from "./quiet_account.ts";

const SENDS = 60;
const EVERY_MS = 100;
const QUIET = "4917560000001";
const PEOPLE = Array.from({ length: 20 }, (_, i) => String(4917570000000 + i));
const BACKLOG = 20_000;
/** How long the noise takes to be in full swing, and to end. */
const PAUSE_MS = 1_000;
const MEASURES: readonly { name: string; of: keyof QuietTimes; percent: number }[] = [
  { name: "accept p50", of: "accept", percent: 50 },
  { name: "sent p99", of: "sent", percent: 99 },
  { name: "webhook p99", of: "webhook", percent: 99 },
];

/** A gateway, and who makes noise at it. */
interface Place {
  gateway: Child<GatewayReady>;
  noise: Child<true>;
  accounts: readonly LinkedAccount[];
}

interface Stage {
  quiet: Child<QuietReady>;
  account: QuietAccount;
  /** Where the quiet account is. */
  here: Place;
  /** Where nobody is but the loud one. */
  elsewhere: Place;
}

/** What the quiet account had in one round. */
interface Round {
  alone: QuietTimes;
  beside: QuietTimes;
  /** While the noise was made at the other gateway. */
  apart: QuietTimes;
}

export const neighbours: Bench = {
  name: "neighbours",
  about: "a quiet account beside ten kinds of noise, to the same without",
  async run({ rounds, noise: wanted, report }) {
    await using site = await openSite();
    await using quiet = await startChild<QuietReady>("./quiet_account.ts", null);
    const control = httpClient(site.network.ready.controlUrl);
    for (const number of [QUIET, ...PEOPLE]) await control.call("POST", "/phones", { number });
    const here = await makePlace(site, 2);
    const elsewhere = await makePlace(site, 1);
    const [{ apiKey, sessionIds }] = here.accounts as [LinkedAccount];
    const baseUrl = baseUrlOf(here);
    const account = { baseUrl, apiKey, sessionId: sessionIds[0]!, to: QUIET };
    const webhook = { url: quiet.ready.hookUrl, events: ["message.sent"] };
    await httpClient(baseUrl, { "x-api-key": apiKey }).call("POST", "/webhooks", webhook);
    const stage: Stage = { quiet, account, here, elsewhere };
    try {
      await measure(stage);
      const results: Result[] = [];
      const names = NOISES.filter((name) => wanted.split("|").some((part) => name.includes(part)));
      for (const name of names) {
        const measured = await besideAndApart(stage, { name, rounds, report });
        for (const result of measured) report(rowOf(result));
        results.push(...measured);
      }
      return results;
    } finally {
      for (const { noise, gateway } of [here, elsewhere]) {
        await noise.stop();
        await gateway.stop();
      }
    }
  },
};

const baseUrlOf = ({ gateway }: Pick<Place, "gateway">) => `${gateway.ready.url}/v1`;

/** A gateway with linked accounts, the last of which is the loud one: one of its lines is paused, with much in its queue. */
async function makePlace(site: Site, accounts: number): Promise<Place> {
  const folder = await makeLinkedFolder(site, { accounts, lines: 3 });
  const limitedKey = await addLimited(folder);
  const gateway = await startChild<GatewayReady>("./gateway.ts", {
    ...folder.settings,
    PALOMA_DATA_DIR: folder.dataDir,
    PALOMA_OUTBOUND_ALLOW: "127.0.0.0/8",
  });
  const baseUrl = baseUrlOf({ gateway });
  const loud = folder.accounts.at(-1)!;
  const api = httpClient(baseUrl, { "x-api-key": loud.apiKey });
  const lines = await Promise.all(loud.sessionIds.map(async (sessionId) => {
    const { data } = await api.call("GET", `/sessions/${sessionId}/status`);
    return { sessionId, number: data.phone as string };
  }));
  const [busy, paused, flapping] = lines as [typeof lines[0], typeof lines[0], typeof lines[0]];
  await api.call("POST", `/sessions/${paused.sessionId}/queue/pause`);
  for (let left = BACKLOG; left > 0; left -= 10_000) {
    const text = "x".repeat(1_000);
    const messages = Array.from({ length: 10_000 }, (_, i) => ({ to: PEOPLE[i % PEOPLE.length], text }));
    await api.call("POST", "/messages/send/bulk", { sessionId: paused.sessionId, messages });
  }
  const { controlUrl } = site.network.ready;
  const keys = { apiKey: loud.apiKey, limitedKey };
  const setting: NoiseSetting = { baseUrl, controlUrl, ...keys, busy, paused, flapping, people: PEOPLE };
  return { gateway, noise: await startChild<true>("./noise.ts", setting), accounts: folder.accounts };
}

/** An account on a plan that allows few requests a minute; resolves to its key. */
async function addLimited({ dataDir }: LinkedFolder): Promise<string> {
  const { accounts, close } = await openData({ dataDir, secretKey: null }, systemRuntime(makeLog("error")));
  const { apiKey } = await accounts.create({ name: "limited", plan: "free" });
  close();
  return apiKey;
}

async function besideAndApart(
  stage: Stage,
  { name, rounds, report }: { name: NoiseName; rounds: number; report: (line: string) => void },
): Promise<Result[]> {
  const measured: Round[] = [];
  for (let i = 0; i < rounds; i++) {
    const load = () => stage.here.gateway.ask<GatewayLoad>(null);
    await load();
    const alone = await measure(stage);
    const before = await load();
    const { times: beside, answers, load: during } = await whileNoisy(stage, stage.here, name);
    const { times: apart } = await whileNoisy(stage, stage.elsewhere, name);
    report(`${name}: ${JSON.stringify(answers)}; gateway ${loadOf(during)}, without ${loadOf(before)}`);
    measured.push({ alone, beside, apart });
    const p99 = (times: QuietTimes) =>
      (["accept", "queue", "send", "webhook"] as const).map((part) => percentile(times[part], 99).toFixed(0)).join(
        ", ",
      );
    report(`  p99 of accepting, queue, network, webhook: ${p99(beside)} ms; alone ${p99(alone)}, apart ${p99(apart)}`);
  }
  return MEASURES.flatMap(({ name: what, of, percent }) => {
    // Percentiles of all rounds together: a round has too few messages for its own.
    const [alone, beside, apart] = (["alone", "beside", "apart"] as const).map((side) =>
      percentile(measured.flatMap((round) => round[side][of]), percent)
    ) as [number, number, number];
    const ratio = (other: number) => [beside / Math.max(1, other)];
    const against = (other: number) => `${beside.toFixed(1)} ms against ${other.toFixed(1)} ms`;
    return [
      { name: `${what} beside ${name}`, ratios: ratio(alone), goal: { atMost: 2 }, detail: against(alone) },
      { name: "  … to the noise at another gateway", ratios: ratio(apart), goal: null, detail: against(apart) },
    ];
  });
}

async function whileNoisy(
  stage: Stage,
  { noise, gateway }: Place,
  name: NoiseName,
): Promise<{ times: QuietTimes; answers: NoiseAnswer; load: GatewayLoad }> {
  await tell(noise, { begin: name });
  await sleep(systemClock, PAUSE_MS);
  await gateway.ask(null);
  const times = await measure(stage);
  const load = await gateway.ask<GatewayLoad>(null);
  const answers = await tell(noise, { end: true });
  await sleep(systemClock, PAUSE_MS);
  return { times, answers, load };
}

function loadOf({ heldMs, usedMs, reads, flushes }: GatewayLoad): string {
  return `held ${heldMs.toFixed(0)} ms, used ${usedMs.toFixed(0)} ms, ${reads} reads, ${flushes} flushes`;
}

function measure({ quiet, account }: Stage): Promise<QuietTimes> {
  const question: QuietQuestion = { ...account, sends: SENDS, everyMs: EVERY_MS };
  return quiet.ask<QuietTimes>(question);
}

function tell(noise: Child<true>, question: NoiseQuestion): Promise<NoiseAnswer> {
  return noise.ask<NoiseAnswer>(question);
}
