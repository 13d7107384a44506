import assert from "node:assert/strict";
import { unindexChats } from "../../../../src/message/history/erase.ts";
import { indexHistories, makeFilterIndex } from "../../../../src/message/history/filter_index.ts";
import { newestIn, type NumberSet } from "../../../../src/message/history/number_set.ts";
import { messageKeys } from "../../../../src/message/rows.ts";
import { Change, type Kv } from "../../../../src/store/kv.ts";
import { aBulk, aCaller, aLine, aSend, type SendWorld, withSendWorld } from "../../../support/send_world.ts";

/** Oldest first. */
const allIn = (set: NumberSet) => newestIn(set, { skip: 0, limit: Infinity }).reverse();

const RANGE = { first: 1, last: 10_000 };
type Facets = Parameters<ReturnType<typeof makeFilterIndex>["find"]>[1];

const FROM_FIRST: Facets = { session: "ses_1", recipient: null, type: null };

async function found({ kv }: Pick<SendWorld, "kv">, facets: Facets, account = "acc_1"): Promise<number[]> {
  const sets = await makeFilterIndex(kv).find(account, facets, RANGE);
  return sets.flatMap(({ container, bits }) => allIn({ container, bits }));
}

Deno.test("the sweep takes in the histories of all accounts, a history from before the index too, and each once", () =>
  withSendWorld(async (world) => {
    const { accept, kv } = world;
    await accept(aBulk(300));
    await accept(aSend({ line: aLine("ses_2") }));
    await accept(aSend({ caller: aCaller({}, "acc_2") }));
    assert.deepEqual(await found(world, FROM_FIRST), []);
    const { signal } = new AbortController();
    assert.equal(await indexHistories(kv, signal), 302);
    assert.equal(await indexHistories(kv, signal), 0);
    assert.deepEqual(await found(world, FROM_FIRST), Array.from({ length: 300 }, (_, i) => i + 1));
    assert.deepEqual(await found(world, { ...FROM_FIRST, session: "ses_2" }), [301]);
    assert.deepEqual(await found(world, FROM_FIRST, "acc_2"), [1]);
    assert.equal((await kv.get(messageKeys.historyIndexed("acc_1"))).value, 301);
  }));

Deno.test("two processes that take in the same messages at once count each once and lose none", () =>
  withSendWorld(async (world) => {
    await world.accept(aBulk(700));
    const processes = [makeFilterIndex(world.kv), makeFilterIndex(world.kv), makeFilterIndex(world.kv)];
    await Promise.all(processes.map((index) => index.catchUp("acc_1")));
    assert.deepEqual(await found(world, FROM_FIRST), Array.from({ length: 700 }, (_, i) => i + 1));
    assert.deepEqual(await found(world, { session: "ses_1", recipient: "34600000041", type: null }), [42]);
  }));

Deno.test("messages that are no longer there do not stop the index", () =>
  withSendWorld(async (world) => {
    const { messages } = await world.accept(aBulk(5));
    const [first, , third] = messages.map(({ id }) => messageKeys.message(id));
    await world.kv.commit(new Change().delete(first!).delete(third!));
    await makeFilterIndex(world.kv).catchUp("acc_1");
    assert.deepEqual(await found(world, FROM_FIRST), [2, 4, 5]);
  }));

Deno.test("an answer reads a few rows, whatever the length of the history", () =>
  withSendWorld(async ({ kv, accept }) => {
    for (let i = 0; i < 4; i++) await accept(aBulk(2_000, { line: aLine(`ses_${i}`) }));
    await makeFilterIndex(kv).catchUp("acc_1");
    let rows = 0;
    const counting: Kv = { ...kv, getMany: (keys) => (rows += keys.length, kv.getMany(keys)) };
    const sets = await makeFilterIndex(counting).find("acc_1", { ...FROM_FIRST, type: "text" }, RANGE);
    assert.equal(sets.flatMap(({ container, bits }) => allIn({ container, bits })).length, 2_000);
    assert.equal(rows, 2);
  }));

Deno.test("an erased chat leaves the index though another process takes in messages at that moment", () =>
  withSendWorld(async (world) => {
    const { accept, kv } = world;
    const chat = "34611111111";
    const toChat = aSend({ items: [{ to: chat, content: { kind: "text", text: "hello" } }] });
    await accept(toChat);
    await makeFilterIndex(kv).catchUp("acc_1");
    let reads = 0;
    const racing: Kv = {
      ...kv,
      async get(key) {
        const slot = await kv.get(key);
        if (key[0] !== "history_numbers" || reads++ > 0) return slot;
        await accept(aSend());
        await makeFilterIndex(kv).catchUp("acc_1");
        return slot;
      },
    };
    await unindexChats(racing, "acc_1", { chats: [chat], upTo: 1 });
    assert.deepEqual(await found(world, { session: null, recipient: chat, type: null }), []);
  }));
