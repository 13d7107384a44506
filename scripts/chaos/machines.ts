/**
 * Promise 9 under fire: two APIs and three workers on one PostgreSQL, or one `denokv`, while processes are killed and
 * frozen, connections to the store cut and its server restarted, and messages go out and come in. Afterwards the phone, the
 * network and the feed are asked: each message once, in the order of its line, under one id, each event once.
 */
import { openData } from "../../src/engines.ts";
import { retry } from "../../src/base/retry.ts";
import { httpClient, type Json } from "../../src/cli/client.ts";
import { makeLog } from "../../src/ops/log.ts";
import { sleep, systemClock, systemRandom, systemRuntime } from "../../src/runtime.ts";
import { type Process, RolesStage, type StoreName } from "../../tests/support/roles_stage.ts";
import { type Blow, type Fleet, strike } from "./blows.ts";
import { compare, Feed } from "./event_checks.ts";
import { type FailOver, Holders, judgeFailOver, type LineTimes } from "./fail_over.ts";

interface MachinesOptions {
  store: StoreName;
  lines: number;
  outgoing: number;
  incoming: number;
  /** `kill -9` of APIs and workers; for every sixteen of them there are two cuts, a freeze and a restart of the store. */
  kills: number;
  /** The blows end after this time at the latest. */
  minutes: number;
  report(line: string): void;
}

interface MachinesResult {
  outgoing: number;
  incoming: number;
  blows: Record<string, number>;
  /** Sends that got no answer and were repeated under their idempotency key. */
  repeatedSends: number;
  /** Writes under an old lease that were refused, of workers that had been frozen and woke up. */
  refusedWrites: number;
  /** Stanzas that came to the network's server more than once, under the id that they had. */
  repeatedStanzas: number;
  failOverSeconds: FailOver;
  tookMs: number;
  /** Sentences; empty when every promise held. */
  broken: string[];
}

const CUSTOMER = "4917000000001";
/** So long nothing may come any more before the rest is taken for lost. */
const LOST_AFTER_MS = 60_000;
/** What is still to be sent and to come in is spread over the blows. */
const PACE_MS = 100;

export async function machines(options: MachinesOptions): Promise<MachinesResult> {
  const { lines: count, outgoing, incoming, kills, minutes, report } = options;
  const begun = systemClock.now();
  const seconds = () => Math.round((systemClock.now() - begun) / 1000);
  await using stack = new AsyncDisposableStack();
  const stage = stack.adopt(await RolesStage.open(options.store), (stage) => stage.close());
  const fleet: Fleet = { api: [], worker: [] };
  for (const role of ["api", "api", "worker", "worker", "worker"] as const) fleet[role].push(await stage.start(role));
  await stage.control.call("POST", "/phones", { number: CUSTOMER });
  const numbers = Array.from({ length: count }, (_, i) => `4915300${String(i).padStart(6, "0")}`);
  const lines = await stage.linkLines(stage.client(fleet.api[0]!), numbers);
  report(`${lines.size} lines are linked after ${seconds()} s`);
  const { PALOMA_STORE: store, PALOMA_SECRET_KEY: secretKey, PALOMA_DATA_DIR: dataDir } = stage.env;
  const config = { dataDir: dataDir!, store: store!, secretKey: secretKey! };
  const data = stack.adopt(await openData(config, systemRuntime(makeLog("silent"))), (data) => data.close());
  const holders = stack.adopt(new Holders(data.kv), (holders) => holders.close());

  let repeatedSends = 0;
  /** Asks any API until one answers. */
  const call = async (method: string, path: string, body?: unknown, key?: string): Promise<Json> => {
    for (let tries = 0;; tries++) {
      const api = fleet.api[systemRandom.between(0, fleet.api.length - 1)];
      try {
        if (!api) throw new Error("no API is up");
        const headers = { "x-api-key": stage.apiKey, ...(key ? { "idempotency-key": key } : {}) };
        return await httpClient(`${api.url}/v1`, headers).call(method, path, body);
      } catch (error) {
        if (tries > 200 || / answered 4/.test(String(error))) throw error;
        if (key && tries === 0) repeatedSends++;
        await sleep(systemClock, 250);
      }
    }
  };

  /** The part of the blows that is over. */
  let done = 0;
  const turn = async (part: number) => {
    while (done < part) await sleep(systemClock, PACE_MS);
  };
  const perLine = Math.ceil(outgoing / count);
  const expected = perLine * count;
  const acceptedAt = new Map<string, number[]>(numbers.map((number) => [number, []]));
  const sending = Promise.all([...lines].map(async ([number, sessionId]) => {
    for (let i = 0; i < perLine; i++) {
      await turn(i / perLine);
      const text = textOf(number, i);
      await call("POST", "/messages/send/text", { sessionId, to: CUSTOMER, text }, text.replace(" ", "-"));
      acceptedAt.get(number)!.push(systemClock.now());
    }
  }));
  const written = new Map<string, string[]>(numbers.map((number) => [number, []]));
  const receiving = (async () => {
    for (let i = 0; i < incoming; i++) {
      await turn(i / incoming);
      const to = numbers[i % count]!;
      const { id } = await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to, text: `in ${i}` });
      written.get(to)!.push(id);
    }
  })();
  const blows: Blow[] = [];
  const refused = new Map<Process, number>();
  const struckAt = systemClock.now();
  const striking = strike(stage, fleet, {
    kills,
    minutes,
    struck(blow, killed) {
      blows.push(blow);
      done = Math.max(killed / kills, (systemClock.now() - struckAt) / (minutes * 60_000));
      if (blows.length % 10 === 0) report(`${blows.length} blows, ${killed} kills after ${seconds()} s`);
    },
    woken: async (worker) => {
      // It has much to give up first.
      const count = await retry(() => stage.metric(worker, "paloma_refused_writes_total"), {
        clock: systemClock,
        pauseMs: [1_000, 2_000, 5_000, 10_000, 20_000],
      }).catch(() => null);
      if (count !== null) refused.set(worker, count);
      report(`a worker woke up: ${count ?? "it does not say how many"} of its writes were refused`);
    },
  }).finally(() => done = 1);
  await Promise.all([striking, sending, receiving]);
  report(`all is accepted after ${seconds()} s; waiting for the rest`);

  const inbox = await untilAll(() => stage.inbox(CUSTOMER), (there) => {
    report(`${there.length} of ${expected} are at the phone after ${seconds()} s`);
    return { there: there.length, wanted: expected };
  });
  const feed = new Feed(call);
  const events = await untilAll(() => feed.readOn(), (all) => {
    const there = all.filter(({ event }) => event === "message.sent" || event === "message.received").length;
    return { there, wanted: expected + incoming };
  });
  const all: Json[] = await stage.control.call("GET", "/wire");
  const wire = all.filter(({ retry }) => !retry);

  const broken: string[] = [];
  const times: LineTimes[] = [];
  for (const [number, lineId] of lines) {
    const wanted = Array.from({ length: perLine }, (_, i) => textOf(number, i));
    broken.push(...compare(`line ${number}`, inbox.map(({ text }) => text).filter(isOf(number)), wanted));
    const first = new Map<string, number>();
    for (const { line, id, time } of wire) if (line === number && !first.has(id)) first.set(id, time);
    if (first.size !== perLine) broken.push(`line ${number}: ${first.size} ids on the wire for ${perLine} messages`);
    const received = events.filter(({ event, sessionId }) => event === "message.received" && sessionId === lineId);
    broken.push(
      ...compare(`received by ${number}`, received.map(({ data }) => data.messageId), written.get(number)!),
    );
    times.push({ lineId, acceptedAt: acceptedAt.get(number)!, sentAt: [...first.values()] });
  }
  const sent = events.filter(({ event }) => event === "message.sent").map(({ data }) => data.messageId);
  if (new Set(sent).size !== sent.length) {
    broken.push(`${sent.length - new Set(sent).size} events message.sent came twice`);
  }
  if (sent.length < expected) broken.push(`${expected - sent.length} events message.sent are missing`);
  const order = events.map(({ id }) => id);
  if (order.some((id, i) => i > 0 && id <= order[i - 1])) {
    broken.push("the feed is not in the order of its ids, each once");
  }
  if (broken.length > 0) report(`what the processes wrote is in ${await keepLogs(stage)}`);

  return {
    outgoing: expected,
    incoming,
    blows: Object.fromEntries([...Map.groupBy(blows, ({ kind }) => kind)].map(([kind, of]) => [kind, of.length])),
    repeatedSends,
    refusedWrites: [...refused.values()].reduce((sum, count) => sum + count, 0),
    repeatedStanzas: wire.length - new Set(wire.map(({ id }) => id)).size,
    failOverSeconds: judgeFailOver(blows, { holders, lines: times }),
    tookMs: systemClock.now() - begun,
    broken,
  };
}

/** Writes the log of each process there was into a new folder, which stays. */
async function keepLogs({ started }: RolesStage): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "paloma-chaos-" });
  for (const [i, process] of started.entries()) {
    await Deno.writeTextFile(`${folder}/${String(i).padStart(3, "0")}.log`, process.stderr());
  }
  return folder;
}

/** Looks until all is there, or until nothing was added for a while. */
async function untilAll(
  look: () => Promise<Json[]>,
  count: (found: Json[]) => { there: number; wanted: number },
): Promise<Json[]> {
  for (let most = -1, since = systemClock.now();;) {
    const found = await look();
    const { there, wanted } = count(found);
    if (there > most) [most, since] = [there, systemClock.now()];
    if (there >= wanted || systemClock.now() - since > LOST_AFTER_MS) return found;
    await sleep(systemClock, 2_000);
  }
}

const textOf = (number: string, i: number) => `${number} ${String(i).padStart(5, "0")}`;
const isOf = (number: string) => (text: string) => text.startsWith(`${number} `);
