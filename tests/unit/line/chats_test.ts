import assert from "node:assert/strict";
import {
  Chats,
  keepHeard,
  keepKnown,
  keepMoved,
  laneOf,
  makeSweepKnown,
  newAmong,
  sweepHeard,
} from "../../../src/line/chats.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { FakeNetwork } from "../../support/fake_network.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START = Date.UTC(2026, 0, 1);

Deno.test("a chat that wrote more than a day ago is remembered no longer, on a line that sends nothing either", async () => {
  const chats = new Chats(new MemoryKv(), "ses_1");
  const hear = (chat: string, at: number) => chats.heard(chat, { at, now: at });
  for (let hour = 0; hour < 72; hour++) {
    hear("regular", START + hour * HOUR_MS);
    hear(`passer-by ${hour}`, START + hour * HOUR_MS);
  }
  const now = START + 71 * HOUR_MS;
  const remembered = await chats.load(now);
  assert.equal(remembered.length, 1 + 24);
  assert(remembered.every((chat) => chats.wroteLately(chat, now)));
});

Deno.test("a chat in which nobody has written for a year is new again, and the line's keys for it are gone", async () => {
  const kv = new MemoryKv();
  const network = new FakeNetwork(testRuntime().clock);
  const [ana, ben, cleo, lid] = ["34600000001", "34600000002", "34600000003", "123456789012345@lid"];
  network.numbers.set(lid, ben);
  const write = async (chat: string, at: number) => {
    const change = new Change();
    keepKnown(change, "ses_1", { chat, at });
    await kv.commit(change);
  };
  for (const chat of [ana, ben, cleo]) await write(chat, START);
  const heard = new Change();
  keepHeard(heard, "ses_1", { chats: [lid], at: START + 100 * DAY_MS });
  await kv.commit(heard.set(lineKeys.knownChat("ses_2", ana), true));
  await write(cleo, START + DAY_MS);

  const sweep = makeSweepKnown(kv, network);
  assert.equal(await sweep(START + 364 * DAY_MS), 0);
  assert.equal(await sweep(START + 365 * DAY_MS), 2);
  assert.deepEqual(await newAmong(kv, "ses_1", [ana, ben, cleo, lid]), new Set([ana, ben]));
  assert.deepEqual(network.erased, [`ses_1 keys of ${ana}`], "the other is written to under another name");
  assert.deepEqual(await newAmong(kv, "ses_2", [ana]), new Set(), "an older gateway did not note since when");
  assert.equal(await sweep(START + 465 * DAY_MS), 2);
  assert.deepEqual(network.erased.slice(1), [`ses_1 keys of 123456789012345,${ben}`, `ses_1 keys of ${cleo}`].sort());
});

Deno.test("somebody who has moved is as well known at the new address, and what came from there counts", async () => {
  const kv = new MemoryKv();
  const [first, second, third] = ["123456789012345@lid", "223456789012345@lid", "323456789012345@lid"];
  const heard = new Change();
  keepHeard(heard, "ses_1", { chats: [first], at: START });
  keepHeard(heard, "ses_1", { chats: [third], at: START + DAY_MS });
  await kv.commit(heard);
  await keepMoved(kv, "ses_1", { old: first, lid: second });
  await keepMoved(kv, "ses_1", { old: second, lid: third });
  assert.deepEqual(await newAmong(kv, "ses_1", [second]), new Set());
  assert.equal(await laneOf(kv, "ses_1", { chat: second, now: START }), "reply");
  assert.equal((await kv.get(lineKeys.heard("ses_1", third))).value, START + DAY_MS);
});

Deno.test("that a chat was read is forgotten once nothing of it can be unread", async () => {
  const kv = new MemoryKv();
  await kv.commit(new Change().set(lineKeys.chatRead("ses_1", "34600000001"), START));
  assert.equal(await sweepHeard(kv, START + 31 * DAY_MS), 0);
  assert.equal(await sweepHeard(kv, START + 32 * DAY_MS), 1);
});

Deno.test("a chat that writes again while the sweep is about to forget it is not forgotten", async () => {
  const kv = new MemoryKv();
  const write = (at: number) => {
    const change = new Change();
    keepHeard(change, "ses_1", { chats: ["34600000001"], at });
    return change;
  };
  await kv.commit(write(START));
  const commit = kv.commit.bind(kv);
  kv.commit = async (change) => {
    await commit(write(START + 3 * DAY_MS));
    return await commit(change);
  };
  assert.equal(await sweepHeard(kv, START + 3 * DAY_MS), 0);
  assert.equal((await kv.get(lineKeys.heard("ses_1", "34600000001"))).value, START + 3 * DAY_MS);
});
