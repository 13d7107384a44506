/**
 * Chats of an older version's history are indexed while fifty texts a second are sent, through the whole gateway and the
 * simulated network: how long a text takes to be accepted and to be sent, against the same before and after.
 */
import { openData } from "../../src/engines.ts";
import { httpClient, until } from "../../src/cli/client.ts";
import { type Backfill, chatKeys } from "../../src/chat/rows.ts";
import { lineKeys } from "../../src/line/rows.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemClock, systemRuntime } from "../../src/runtime.ts";
import { pathsOf } from "../../src/data/data_folder.ts";
import { openNative } from "../../src/store/deno_kv/deno_kv.ts";
import { Change } from "../../src/store/kv.ts";
import { startChild } from "./child.ts";
import type { GatewayReady } from "./gateway.ts";
import { fill } from "./history.ts";
import { makeLinkedFolder, newPhones } from "./linked_folder.ts";
import { type Bench, percentile, type Result } from "./measure.ts";
import { openSite } from "./network.ts";
import type { QuietAccount, QuietQuestion, QuietReady, QuietTimes } from "./quiet_account.ts";

const EVERY_MS = 20;
/** Of one window, 20 s. */
const SENDS = 1_000;
/** Before the indexing, and after it. */
const WINDOWS_ALONE = 2;
/** Sent before the first window, uncounted. */
const WARM = 250;

/** How long texts took to their 202, and until the network had them, ms. */
type Times = Pick<QuietTimes, "accept" | "sent">;

export const reindex: Bench = {
  name: "reindex",
  about: "p99 of fifty sends a second while the chats of an older history are indexed, to the same before and after",
  async run({ messages, report }) {
    await using site = await openSite();
    await using quiet = await startChild<QuietReady>("./quiet_account.ts", null);
    const folder = await makeLinkedFolder(site, {
      accounts: 1,
      lines: 1,
      prepare: async (api) => {
        await api.call("POST", "/webhooks", { url: quiet.ready.hookUrl, events: ["message.sent"] });
      },
      settings: { PALOMA_OUTBOUND_ALLOW: "127.0.0.1" },
    });
    const { apiKey, sessionIds } = folder.accounts[0]!;
    const [sessionId, [to]] = [sessionIds[0]!, await newPhones(site.network, 1)];
    const runtime = systemRuntime(makeLog("error"));
    const { dataDir } = folder;
    const data = await openData({ dataDir, secretKey: null }, runtime);
    const line = await data.kv.get(lineKeys.line(sessionId));
    const { accountId } = line.value!;
    await fill(data.kv, messages, runtime, { accountId, sessionIds });
    // The line has had its number since before the history began.
    await data.kv.commit(new Change().set(line.key, { ...line.value!, numberSince: 0 }));
    data.close();
    report(`${messages} messages written`);

    using native = await openNative(pathsOf(dataDir).store, { runtime });
    const mark = chatKeys.backfill(accountId) as Deno.KvKey;
    const ofMark = async () => (await native.get<Backfill>(mark)).value;

    /** Sends from a gateway of its own, window by window as long as wanted. */
    async function sendWhile(goesOn: (windows: number) => boolean | Promise<boolean>): Promise<Times> {
      await using gateway = await startChild<GatewayReady>("./gateway.ts", {
        ...folder.settings,
        PALOMA_DATA_DIR: dataDir,
      });
      const baseUrl = `${gateway.ready.url}/v1`;
      await until(systemClock, async () => {
        const api = httpClient(baseUrl, { "x-api-key": apiKey });
        return (await api.call("GET", `/sessions/${sessionId}/status`)).data.status === "connected" || null;
      }, { what: "the line to connect" });
      const account: QuietAccount = { baseUrl, apiKey, sessionId, to: to! };
      const send = (sends: number) =>
        quiet.ask<QuietTimes>({ ...account, sends, everyMs: EVERY_MS } satisfies QuietQuestion);
      await send(WARM);
      const times: Times = { accept: [], sent: [] };
      for (let windows = 0; await goesOn(windows); windows++) {
        const { accept, sent } = await send(SENDS);
        times.accept.push(...accept);
        times.sent.push(...sent);
        report(`p99 of accepting ${percentile(accept, 99).toFixed(1)} ms; ${JSON.stringify(await ofMark())}`);
      }
      return times;
    }

    const before = await sendWhile((windows) => windows < WINDOWS_ALONE);
    await native.set(mark, { step: "sent", upTo: messages } satisfies Backfill);
    const began = systemClock.now();
    const during = await sendWhile(async () => await ofMark() !== null);
    report(`${messages} indexed in ${((systemClock.now() - began) / 1000).toFixed(0)} s`);
    const after = await sendWhile((windows) => windows < WINDOWS_ALONE);
    return (["accept", "sent"] as const).map((of): Result => {
      const p99 = (times: Times) => percentile(times[of], 99);
      const alone = [before, after].map(p99);
      return {
        name: `p99 of ${of === "accept" ? "accepting" : "sending"} beside the indexing / alone`,
        ratios: alone.map((each) => p99(during) / each),
        goal: of === "accept" ? { atMost: 2 } : null,
        detail: `${p99(during).toFixed(1)} ms against ${alone.map((each) => each.toFixed(1)).join(" and ")} ms`,
      };
    });
  },
};
