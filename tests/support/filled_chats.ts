/** A line with a long chat and many short ones, written into the store of a stage that runs. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { chatKeys, type ChatRow } from "../../src/chat/rows.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import { Change } from "../../src/store/kv.ts";
import type { Stage } from "./stage.ts";

/** The name in the long chat, which is the newest. Its texts are `message 0`, `message 1`, … */
export const THE_LONG_ONE = "The long one";
const FIRST_NUMBER = 491710000000;
const ROWS_A_COMMIT = 400;

/** Writes one chat of so many messages, and so many of one message. */
export async function fillChats(
  stage: Stage,
  lineId: string,
  { messages, chats }: { messages: number; chats: number },
) {
  const kv = await openDenoKv(join(stage.dataDir, "paloma.db"), { runtime: systemRuntime(makeLog("error")) });
  const start = (Date.now() - 3_600_000) * 1000;
  const { accountId } = stage;
  let change = new Change();
  const commit = async () => {
    assert.ok(await kv.commit(change));
    change = new Change();
  };
  const write = async (number: string, name: string, rows: [order: number, text: string][]) => {
    for (const [order, text] of rows) {
      const timestamp = Math.floor(order / 1_000_000);
      const author = { number, name };
      const row: ChatRow = { accountId, id: `M${order}`, timestamp, author, type: "conversation", text };
      change.set(chatKeys.message(lineId, number, order), row);
      if (change.mutations.length >= ROWS_A_COMMIT) await commit();
    }
    const [last] = rows.at(-1)!;
    const record = { accountId, chat: number, parts: [number], number, lid: null, name, unread: 0, wrote: true, last };
    change.set(chatKeys.record(lineId, false, last, number), record);
    change.set(chatKeys.place(lineId, number), { last, unread: false });
  };
  try {
    const long = Array.from({ length: messages }, (_, i): [number, string] => [start + i, `message ${i}`]);
    await write(String(FIRST_NUMBER), THE_LONG_ONE, long);
    for (let i = 1; i <= chats; i++) {
      await write(String(FIRST_NUMBER + i), `Customer ${i}`, [[start - 1000 * i, "hello"]]);
    }
    await commit();
  } finally {
    kv.close();
  }
}
