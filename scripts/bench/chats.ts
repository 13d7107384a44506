/**
 * Chats: the list of 10,000 and pages of one long chat, against one raw `get` of a message in the same store. Page and
 * `get` take turns. The reads of each page are counted too, and the bytes that the index adds to a message.
 */
import { join } from "node:path";
import { makeChatIndex } from "../../src/chat/chat_index.ts";
import { chatKeys, type ChatRow } from "../../src/chat/rows.ts";
import { ChatHistory } from "../../src/line/chat_history.ts";
import { messageKeys } from "../../src/message/rows.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { openDenoKv, openNative } from "../../src/store/deno_kv/deno_kv.ts";
import { Change, type Kv } from "../../src/store/kv.ts";
import { ACCOUNT, fill, messageId } from "./history.ts";
import { type Bench, median, percentile, type Result } from "./measure.ts";

const LINE = { lineId: "ses_01kf0m3e4v8s2q6w9x1y5z7abc", accountId: ACCOUNT };
const CHATS = 10_000;
const LONG = "34600000001";
const FIRST_ORDER = 1_700_000_000_000_000;
const LIMIT = 20;
const ROWS_A_COMMIT = 400;
/** Pages and gets per round; the first ones are not counted. */
const SAMPLES = 300;
const WARM = 30;
/** Nobody here has a second address. */
const NOBODY = { lidOf: () => Promise.resolve(null), numberOf: () => Promise.resolve(null) };

interface Reads {
  gets: number;
  lists: number;
  rows: number;
}

export const chats: Bench = {
  name: "chats",
  about: `p99 of pages of ${CHATS} chats and of a long one, against one raw get of a message`,
  async run({ rounds, messages, report }) {
    const folder = await Deno.makeTempDir({ prefix: "paloma-bench-" });
    const runtime = systemRuntime(makeLog("error"));
    const path = join(folder, "paloma.db");
    const kv = await openDenoKv(path, { runtime });
    const native = await openNative(path, { runtime });
    try {
      const own = Math.floor(messages / 2);
      await fill(kv, own, runtime);
      const before = await sizeOf(path);
      await fillLong(kv, messages, own);
      const bytes = ((await sizeOf(path)) - before) / messages;
      await fillChats(kv);
      report(
        `${CHATS} chats, one of ${messages} messages, half of them sent; ${bytes.toFixed(0)} bytes a message added`,
      );
      const reads: Reads = { gets: 0, lists: 0, rows: 0 };
      const counted = counting(kv, reads);
      const history = new ChatHistory({ kv: counted, chats: makeChatIndex({ kv: counted, network: NOBODY }) });
      const list = (unread: boolean) => ({ limit: LIMIT, after: null, q: null, unread, wrote: false });
      const deep = () => `cur_${FIRST_ORDER + Math.floor(messages * (0.4 + Math.random() * 0.2))}`;
      const pages: [string, () => Promise<unknown>][] = [
        ["the first page of chats", () => history.list(LINE, list(false))],
        ["the first page of unread chats", () => history.list(LINE, list(true))],
        ["one chat, with its unread count", () => history.get(LINE, LONG)],
        [
          "the newest page of the long chat",
          () => history.messages(LINE, LONG, { limit: LIMIT, before: null, after: null }),
        ],
        [
          "a page in the middle of it",
          () => history.messages(LINE, LONG, { limit: LIMIT, before: deep(), after: null }),
        ],
      ];
      const results: Result[] = [];
      for (const [what, page] of pages) {
        const ratios: number[] = [];
        Object.assign(reads, { gets: 0, lists: 0, rows: 0 });
        for (let round = 0; round < rounds; round++) {
          const [pageMs, getMs]: [number[], number[]] = [[], []];
          for (let i = 0; i < WARM + SAMPLES; i++) {
            pageMs.push(await timed(page));
            const id = messageId(1 + Math.floor(Math.random() * own));
            getMs.push(await timed(() => native.get(messageKeys.message(id) as Deno.KvKey)));
          }
          ratios.push(percentile(pageMs.slice(WARM), 99) / percentile(getMs.slice(WARM), 99));
        }
        const each = rounds * (WARM + SAMPLES);
        const { gets, lists, rows } = reads;
        const detail = `${(gets / each).toFixed(1)} keys got, ${(lists / each).toFixed(1)} lists of ` +
          `${(rows / each).toFixed(1)} rows`;
        results.push({ name: `p99 of ${what} / raw get`, ratios, goal: { atMost: 20 }, detail });
        report(`${what}: ${median(ratios).toFixed(1)} raw gets; ${detail}`);
      }
      return results;
    } finally {
      native.close();
      kv.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
};

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

async function sizeOf(path: string): Promise<number> {
  const sizes = [path, `${path}-wal`].map((file) => Deno.stat(file).then(({ size }) => size, () => 0));
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

function counting(kv: Kv, reads: Reads): Kv {
  return {
    ...kv,
    get(key) {
      reads.gets++;
      return kv.get(key);
    },
    getMany(keys) {
      reads.gets += keys.length;
      return kv.getMany(keys);
    },
    async *list(range, options) {
      reads.lists++;
      for await (const row of kv.list(range, options)) {
        reads.rows++;
        yield row;
      }
    },
  };
}

async function fillLong(kv: Kv, messages: number, own: number): Promise<void> {
  let change = new Change();
  for (let i = 0; i < messages; i++) {
    const row: ChatRow = i % 2 === 0 ? said(`3EB0${i}`) : { messageId: messageId(1 + (i >> 1) % own) };
    change.set(chatKeys.message(LINE.lineId, LONG, FIRST_ORDER + i), row);
    if (change.mutations.length < ROWS_A_COMMIT) continue;
    await kv.commit(change);
    change = new Change();
  }
  addRecord(change, LONG, { last: FIRST_ORDER + messages - 1, unread: 3 });
  await kv.commit(change);
}

async function fillChats(kv: Kv): Promise<void> {
  let change = new Change();
  for (let i = 1; i < CHATS; i++) {
    const chat = String(34_600_100_000 + i);
    const last = FIRST_ORDER + i * 1_000_000;
    change.set(chatKeys.message(LINE.lineId, chat, last), said(`3EB1${i}`));
    addRecord(change, chat, { last, unread: i % 10 === 0 ? 1 : 0 });
    if (change.mutations.length < ROWS_A_COMMIT) continue;
    await kv.commit(change);
    change = new Change();
  }
  await kv.commit(change);
}

function addRecord(change: Change, chat: string, { last, unread }: { last: number; unread: number }): void {
  const record = { accountId: ACCOUNT, chat, parts: [chat], number: chat, lid: "1@lid", name: "Ana", unread, last };
  change.set(chatKeys.record(LINE.lineId, unread > 0, last, chat), record)
    .set(chatKeys.place(LINE.lineId, chat), { last, unread: unread > 0 });
}

function said(id: string): ChatRow {
  return {
    accountId: ACCOUNT,
    id,
    timestamp: 1_700_000_000,
    author: { number: LONG, name: "Ana" },
    type: "conversation",
    text: "Is my parcel on its way? I am at home between 9 and 12.",
  };
}
