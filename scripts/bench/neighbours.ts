/**
 * A quiet account beside ten kinds of noise that another account makes on the same gateway: how long its messages take to
 * be accepted, to be sent and to reach its webhook, against the same without the noise, measured just before.
 */
import { dataFolder } from "../../src/app.ts";
import { httpClient } from "../../src/cli/client.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { type Child, startChild } from "./child.ts";
import type { GatewayReady } from "./gateway.ts";
import { type LinkedFolder, makeLinkedFolder } from "./linked_folder.ts";
import { type Bench, median, type Result, rowOf } from "./measure.ts";
import type { NetworkReady } from "./network.ts";
import { type NoiseAnswer, type NoiseName, type NoiseQuestion, NOISES, type NoiseSetting } from "./noise.ts";
import type { QuietAccount, QuietQuestion, QuietReady, QuietTimes } from "./quiet_account.ts";

const SENDS = 24;
const QUIET = "4917560000001";
const PEOPLE = Array.from({ length: 20 }, (_, i) => String(4917570000000 + i));
const BACKLOG = 20_000;
/** How long the noise takes to be in full swing, and to end. */
const PAUSE_MS = 1_000;
const MEASURES = ["acceptMs", "sentMs", "webhookMs"] as const;
const NAMES: Record<keyof QuietTimes, string> = {
  acceptMs: "accept p50",
  sentMs: "sent p99",
  webhookMs: "webhook p99",
};

interface Stage {
  quiet: Child<QuietReady>;
  noise: Child<true>;
  account: QuietAccount;
}

export const neighbours: Bench = {
  name: "neighbours",
  about: "a quiet account beside ten kinds of noise, to the same without",
  async run({ rounds, noise: wanted, report }) {
    const root = await Deno.makeTempDir({ prefix: "paloma-bench-" });
    const network = await startChild<NetworkReady>("./network.ts", null);
    const quiet = await startChild<QuietReady>("./quiet_account.ts", null);
    const control = httpClient(network.ready.controlUrl);
    for (const number of [QUIET, ...PEOPLE]) await control.call("POST", "/phones", { number });
    const folder = await makeLinkedFolder(network, {
      root,
      options: {
        accounts: 2,
        lines: 3,
      },
    });
    const limitedKey = await addLimited(folder);
    const gateway = await startChild<GatewayReady>("./gateway.ts", {
      ...folder.settings,
      PALOMA_DATA_DIR: folder.dataDir,
      PALOMA_OUTBOUND_ALLOW: "127.0.0.0/8",
    });
    const baseUrl = `${gateway.ready.url}/v1`;
    const [still, loud] = folder.accounts;
    const account = { baseUrl, apiKey: still!.apiKey, sessionId: still!.sessionIds[0]!, to: QUIET };
    const noise = await startChild<true>("./noise.ts", await prepare());
    const stage: Stage = { quiet, noise, account };
    try {
      await measure(stage);
      const results: Result[] = [];
      const names = NOISES.filter((name) => wanted.split("|").some((part) => name.includes(part)));
      for (const name of names) {
        const measured = await beside(stage, { name, rounds, report });
        for (const result of measured) report(rowOf(result));
        results.push(...measured);
      }
      return results;
    } finally {
      await noise.stop();
      await gateway.stop();
      await Promise.all([quiet.stop(), network.stop()]);
      await Deno.remove(root, { recursive: true });
    }

    /** The quiet account's webhook, and a line of the loud one that is paused, with much in its queue. */
    async function prepare(): Promise<NoiseSetting> {
      const api = httpClient(baseUrl, { "x-api-key": still!.apiKey });
      await api.call("POST", "/webhooks", { url: quiet.ready.hookUrl, events: ["message.sent"] });
      const loudApi = httpClient(baseUrl, { "x-api-key": loud!.apiKey });
      const lines = await Promise.all(loud!.sessionIds.map(async (sessionId) => {
        const { data } = await loudApi.call("GET", `/sessions/${sessionId}/status`);
        return { sessionId, number: data.phone as string };
      }));
      const [busy, paused, flapping] = lines as [typeof lines[0], typeof lines[0], typeof lines[0]];
      await loudApi.call("POST", `/sessions/${paused.sessionId}/queue/pause`);
      for (let left = BACKLOG; left > 0; left -= 10_000) {
        const text = "x".repeat(1_000);
        const messages = Array.from({ length: 10_000 }, (_, i) => ({ to: PEOPLE[i % PEOPLE.length], text }));
        await loudApi.call("POST", "/messages/send/bulk", { sessionId: paused.sessionId, messages });
      }
      const { controlUrl } = network.ready;
      const keys = { apiKey: loud!.apiKey, limitedKey };
      return { baseUrl, controlUrl, ...keys, busy, paused, flapping, people: PEOPLE };
    }
  },
};

/** An account on a plan that allows few requests a minute; resolves to its key. */
async function addLimited({ dataDir }: LinkedFolder): Promise<string> {
  const { accounts, close } = await dataFolder.open({ dataDir, secretKey: null }, systemRuntime(makeLog("error")));
  const { apiKey } = await accounts.create({ name: "limited", plan: "free" });
  close();
  return apiKey;
}

async function beside(
  stage: Stage,
  { name, rounds, report }: { name: NoiseName; rounds: number; report: (line: string) => void },
): Promise<Result[]> {
  const measured: { alone: QuietTimes; beside: QuietTimes }[] = [];
  let answers: NoiseAnswer = {};
  for (let i = 0; i < rounds; i++) {
    const alone = await measure(stage);
    await tell(stage, { begin: name });
    await pause();
    const beside = await measure(stage);
    answers = await tell(stage, { end: true });
    await pause();
    measured.push({ alone, beside });
  }
  report(`${name}: ${JSON.stringify(answers)}`);
  return MEASURES.map((what) => {
    const of = (side: "alone" | "beside") => median(measured.map((round) => round[side][what])).toFixed(1);
    return {
      name: `${NAMES[what]} beside ${name}`,
      ratios: measured.map(({ alone, beside }) => beside[what] / Math.max(1, alone[what])),
      goal: { atMost: 2 },
      detail: `${of("beside")} ms against ${of("alone")} ms`,
    };
  });
}

function measure({ quiet, account }: Stage): Promise<QuietTimes> {
  const question: QuietQuestion = { ...account, sends: SENDS };
  return quiet.ask<QuietTimes>(question);
}

function tell({ noise }: Stage, question: NoiseQuestion): Promise<NoiseAnswer> {
  return noise.ask<NoiseAnswer>(question);
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
