/**
 * Pages of a long history, near and deep, with and without filters, against one raw `get` of a message in the
 * same store. Page and `get` take turns, so that both meet the same conditions. Depths vary a little from page to page, or
 * one page would be asked for again and again from a warm cache.
 */
import { join } from "node:path";
import { makeFilterIndex } from "../../src/message/history/filter_index.ts";
import { History } from "../../src/message/history/history.ts";
import { moveStatus } from "../../src/message/history/status_index.ts";
import { EMPTY_LEDGER, extendLedger } from "../../src/message/history/ledger.ts";
import { type Message, MESSAGE_STATUSES, type MessageStatus } from "../../src/message/message.ts";
import { utcDay } from "../../src/account/quota.ts";
import { makeLog } from "../../src/ops/log.ts";
import { type Runtime, systemRuntime } from "../../src/runtime.ts";
import { openDenoKv, openNative } from "../../src/store/deno_kv/deno_kv.ts";
import { type Ledger, messageKeys } from "../../src/message/rows.ts";
import { Change, type Key, type Kv } from "../../src/store/kv.ts";
import { type Bench, type BenchOptions, median, percentile, type Result } from "./measure.ts";

export const ACCOUNT = "acc_01kf0m3e4v8s2q6w9x1y5z7abc";
/** The API's default. */
const LIMIT = 20;
const DEPTHS = [1, 100, 10_000];
const SESSIONS = ["ses_01kf0m3e4v8s2q6w9x1y5z7abc", "ses_01kf0m3e4v8s2q6w9x1y5z7abd"] as const;
const OWNER: Owner = { accountId: ACCOUNT, sessionIds: SESSIONS };
/** Recipients, used in turn. */
const RECIPIENTS = 1_000;
const FILTERS: [string, Partial<Parameters<History["page"]>[1]>][] = [
  ["any message", {}],
  ["sent", { status: "sent" }],
  ["failed", { status: "failed" }],
  ["one of two sessions", { sessionId: SESSIONS[0] }],
  ["failed of one of two sessions", { sessionId: SESSIONS[0], status: "failed" }],
  ["to one of 1,000 recipients", { recipient: recipientOf(7) }],
];
/** Pages and gets per round and depth; the first ones are not counted. */
const SAMPLES = 1_000;
const WARM = 50;
const MESSAGES_A_COMMIT = 200;
const COUNTERS_A_COMMIT = 800;
const DAYS = 60;
const DAY_MS = 24 * 60 * 60 * 1000;

export const history: Bench = {
  name: "history",
  about: "p99 of a page of a long history, against one raw get of a message",
  async run(options) {
    const folder = await Deno.makeTempDir({ prefix: "paloma-bench-" });
    const runtime = systemRuntime(makeLog("error"));
    const path = join(folder, "paloma.db");
    const kv = await openDenoKv(path, { runtime });
    const native = await openNative(path, { runtime });
    try {
      const began = performance.now();
      await fill(kv, options.messages, runtime);
      options.report(`${options.messages} messages written in ${((performance.now() - began) / 1000).toFixed(0)} s`);
      return await compare({ kv, native }, options);
    } finally {
      native.close();
      kv.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
};

async function compare(
  { kv, native }: { kv: Kv; native: Deno.Kv },
  { rounds, messages, report }: BenchOptions,
): Promise<Result[]> {
  const pages = new History(kv);
  const results: Result[] = [];
  const began = performance.now();
  await makeFilterIndex(kv).catchUp(ACCOUNT);
  report(`the index of filters took all in within ${((performance.now() - began) / 1000).toFixed(0)} s`);
  for (const [what, filter] of FILTERS) {
    const { total } = await pages.page(ACCOUNT, { ...filter, page: 1, limit: 1 });
    for (const depth of DEPTHS.filter((depth) => depth * LIMIT <= total)) {
      const ratios: number[] = [];
      const details: { pageMs: number; getMs: number }[] = [];
      for (let round = 0; round < rounds; round++) {
        const page: number[] = [];
        const get: number[] = [];
        for (let i = 0; i < WARM + SAMPLES; i++) {
          const number = Math.max(1, Math.round(depth * (0.9 + Math.random() * 0.1)));
          const query = { ...filter, page: number, limit: LIMIT };
          page.push(
            await timed(async () => {
              const found = await pages.page(ACCOUNT, query);
              if (found.messages.length !== LIMIT) {
                throw new Error(`page ${number} has ${found.messages.length} messages`);
              }
            }),
          );
          const id = messageId(1 + Math.floor(Math.random() * messages));
          get.push(await timed(() => native.get(messageKeys.message(id) as Deno.KvKey)));
        }
        const [pageMs, getMs] = [percentile(page.slice(WARM), 99), percentile(get.slice(WARM), 99)];
        ratios.push(pageMs / getMs);
        details.push({ pageMs, getMs });
      }
      const shown = (of: "pageMs" | "getMs") => `${median(details.map((each) => each[of])).toFixed(2)} ms`;
      results.push({
        name: `p99 of page ${depth}, ${what} / raw get`,
        ratios,
        goal: { atMost: 20 },
        detail: `${shown("pageMs")} against ${shown("getMs")}`,
      });
      report(`page ${depth}, ${what}: ${shown("pageMs")} against ${shown("getMs")}`);
    }
  }
  return results;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Ids in the gateway's form that can be computed from a number. */
export function messageId(number: number): string {
  return `msg_01kf0m3e4v8s2q6w9x${String(number).padStart(8, "0")}`;
}

function recipientOf(number: number): string {
  return String(4915550000000 + number % RECIPIENTS);
}

/** Two in three were sent and the rest failed, scattered; the newest wait. */
function statusOf(number: number, messages: number): MessageStatus {
  if (number > messages * 0.999) return "queued";
  return Math.random() < 2 / 3 ? "sent" : "failed";
}

/** Whose history it is; messages go over the sessions in turn. */
interface Owner {
  accountId: string;
  sessionIds: readonly string[];
}

/**
 * Writes a history of 60 days, or its continuation, with the network ids and receipts of what was sent, by the row
 * builders of the product; counters are added up and written last.
 */
export async function fill(kv: Kv, count: number, runtime: Runtime, owner: Owner = OWNER): Promise<void> {
  const { accountId } = owner;
  const counters = new Map<string, { key: Key; amount: bigint }>();
  let ledger: Ledger = (await kv.get(messageKeys.ledger(accountId))).value ?? EMPTY_LEDGER;
  const before = ledger.messages;
  let writing: Promise<unknown> = Promise.resolve();
  const start = runtime.clock.now() - DAYS * DAY_MS;
  for (let first = 1; first <= count; first += MESSAGES_A_COMMIT) {
    const change = new Change();
    const createdAt = start + Math.floor(first / count * DAYS) * DAY_MS;
    const batch = Array.from({ length: Math.min(MESSAGES_A_COMMIT, count - first + 1) }, (_, i) => {
      const number = before + first + i;
      const status = statusOf(first + i, count);
      return message({ owner, number, status, createdAt, networkId: runtime.ids.network() });
    });
    for (const each of batch) addMessage(change, each);
    const day = utcDay(createdAt);
    ledger = extendLedger(change, { accountId, ledger }, {
      messages: batch,
      usage: { day, daily: 0, month: day.slice(0, 7), monthly: 0 },
    });
    for (const each of batch) addCounters(counters, each);
    await writing;
    writing = kv.commit(change);
  }
  await writing;
  const end = new Change().set(messageKeys.ledger(accountId), ledger);
  await kv.commit(end);
  const sums = [...counters.values()];
  for (let i = 0; i < sums.length; i += COUNTERS_A_COMMIT) {
    const change = new Change();
    for (const { key, amount } of sums.slice(i, i + COUNTERS_A_COMMIT)) change.add(key, amount);
    await kv.commit(change);
  }
}

function addMessage(change: Change, message: Message): void {
  const { id, sessionId, networkId, status, deliveredAt, readAt } = message;
  change.set(messageKeys.message(id), message);
  if (status !== "queued") change.set(messageKeys.messageOfNetworkId(sessionId, networkId), id);
  if (deliveredAt !== null) change.set(messageKeys.receipt(id, "delivered", ""), deliveredAt);
  if (readAt !== null) change.set(messageKeys.receipt(id, "read", ""), readAt);
}

function addCounters(counters: Map<string, { key: Key; amount: bigint }>, message: Message): void {
  if (message.status === MESSAGE_STATUSES[0]) return;
  const moved = new Change();
  moveStatus(moved, message, { from: "queued", to: message.status });
  for (const mutation of moved.mutations) {
    if (mutation.kind !== "add") continue;
    const name = mutation.key.join("/");
    const sum = counters.get(name);
    if (sum) sum.amount += mutation.amount;
    else counters.set(name, { key: mutation.key, amount: mutation.amount });
  }
}

function message(
  { owner: { accountId, sessionIds }, number, status, createdAt, networkId }: {
    owner: Owner;
    number: number;
    status: MessageStatus;
    createdAt: number;
    networkId: string;
  },
): Message {
  return {
    id: messageId(number),
    jobId: `job_${String(number).padStart(26, "0")}`,
    accountId,
    sessionId: sessionIds[number % 3 === 0 ? sessionIds.length - 1 : 0]!,
    networkId,
    position: number,
    historyNumber: number,
    to: recipientOf(number),
    content: { kind: "text", text: "Your parcel is on its way and arrives tomorrow between 9 and 12." },
    priority: "normal",
    sendAt: null,
    bulkId: null,
    status,
    attempts: status === "queued" ? 0 : 1,
    error: status === "failed" ? { code: "number_not_registered", message: "The number has no account." } : null,
    createdAt,
    expiresAt: createdAt + DAY_MS,
    sentAt: status === "sent" ? createdAt : null,
    deliveredAt: status === "sent" ? createdAt : null,
    readAt: status === "sent" && number % 2 === 0 ? createdAt : null,
  };
}
