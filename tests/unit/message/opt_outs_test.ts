/** Who is never written to again: how they come on the list, what it refuses, and that nothing slips by. */
import { chatsOn } from "../../support/chats.ts";
import assert from "node:assert/strict";
import { makeOptOuts, optedOutAmong } from "../../../src/message/opt_outs.ts";
import { Recorder } from "../../../src/message/record.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { eventKeys } from "../../../src/event/rows.ts";
import { Change, type Kv } from "../../../src/store/kv.ts";
import { plainIncoming } from "../../support/incoming.ts";
import { ACCOUNT, connectedWorld, type World } from "../../support/line_world.ts";
import { aBulk, aSend, type SendWorld, sendWorld, withSendWorld } from "../../support/send_world.ts";
import { testBell, testEvents } from "../../support/bell.ts";

const NUMBER = "34600000001";
const OTHER = "34600000002";

function listOf(
  { kv, runtime }: Pick<SendWorld, "kv" | "runtime">,
  others: Partial<Parameters<typeof makeOptOuts>[0]> = {},
) {
  return makeOptOuts({
    kv,
    clock: runtime.clock,
    events: testEvents(kv, runtime),
    recorder: { drop: () => Promise.reject(new Error("nothing waits here")) },
    linesOf: () => Promise.resolve([]),
    chats: { addressesOf: () => Promise.resolve([]) },
    wordsOf: () => Promise.resolve([]),
    bell: testBell(runtime),
    ...others,
  });
}

Deno.test("a send to who has opted out is refused, in any form, and costs no quota; off the list it is taken", () =>
  withSendWorld(async (world) => {
    const list = listOf(world);
    const send = (to: string) => world.accept(aSend({ items: [{ to, content: { kind: "text", text: "hi" } }] }));
    await send(NUMBER);
    await list.add("acc_1", NUMBER);
    for (const to of [NUMBER, `${NUMBER}@s.whatsapp.net`]) {
      await assert.rejects(send(to), { code: "recipient_opted_out" });
    }
    await send(OTHER);
    const status = { kind: "status" as const, of: { kind: "text" as const, text: "sale" }, audience: [OTHER, NUMBER] };
    await assert.rejects(world.accept(aSend({ items: [{ to: "status@broadcast", content: status }] })), {
      code: "recipient_opted_out",
    });
    const { total } = await world.history.page("acc_1", ALL);
    assert.equal(total, 2);
    assert.equal((await world.kv.get(messageKeys.ledger("acc_1"))).value?.usage.daily, 2);
    await list.remove("acc_1", NUMBER);
    await send(NUMBER);
    await assert.rejects(list.remove("acc_1", NUMBER), { code: "not_found" });
  }));

Deno.test("a bulk with recipients who have opted out is refused as a whole, and names them", () =>
  withSendWorld(async (world) => {
    const list = listOf(world);
    for (const n of [1, 3]) await list.add("acc_1", `${34600000000 + n}`);
    await assert.rejects(world.accept(aBulk(5)), (error: { code: string; extras: { errors: { path: string }[] } }) => {
      assert.equal(error.code, "validation_failed");
      assert.deepEqual(error.extras.errors.map(({ path }) => path), ["messages.1.to", "messages.3.to"]);
      return true;
    });
    assert.equal((await world.history.page("acc_1", ALL)).total, 0);
    assert.equal((await world.accept(aBulk(1))).messages.length, 1);
  }));

Deno.test("sends that are accepted while a number is put on the list: none after it is", () =>
  withSendWorld(async (world) => {
    const list = listOf(world);
    const answers: Promise<unknown>[] = [];
    let listed = false;
    let listing: Promise<unknown> | undefined;
    let after = 0;
    for (let i = 0; i < 50; i++) {
      const wasListed = listed;
      answers.push(
        world.accept(aSend()).then(
          () => after += wasListed ? 1 : 0,
          (error) => assert.equal(error.code, "recipient_opted_out"),
        ),
      );
      if (i === 20) listing = list.add("acc_1", NUMBER).then(() => listed = true);
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    await Promise.all(answers);
    await listing;
    assert.equal(after, 0);
    assert.equal(listed, true);
  }));

Deno.test("who opts out while a large bulk to them is being accepted ends none of its messages: it is refused as a whole", () =>
  withSendWorld(async ({ kv, runtime, history }) => {
    const events = testEvents(kv, runtime);
    const sessionName = () => Promise.resolve("Support");
    const files = { remove: () => Promise.resolve() };
    const recorder = new Recorder({ kv, chats: chatsOn(kv), runtime, events, sessionName, files });
    const list = listOf({ kv, runtime }, { linesOf: () => Promise.resolve(["ses_1"]), recorder });
    let commits = 0;
    const racing: Kv = {
      ...kv,
      async commit(change, options) {
        const version = await kv.commit(change, options);
        // The staging is announced, then its first messages are written.
        if (++commits === 2) await list.add("acc_1", NUMBER);
        return version;
      },
    };
    const { accept } = sendWorld(racing, runtime);
    await assert.rejects(accept(aBulk(450)), { code: "validation_failed" });
    assert.deepEqual(await Array.fromAsync(kv.list({ prefix: eventKeys.events("acc_1") })), []);
    await accept(aBulk(1));
    assert.equal((await history.page("acc_1", { ...ALL, status: "queued" })).total, 1);
    assert.equal((await history.page("acc_1", { ...ALL, status: "failed" })).total, 0);
  }));

Deno.test("the same number twice is one entry, that of the first; pages are in the order of numbers", () =>
  withSendWorld(async (world) => {
    const list = listOf(world);
    for (const number of ["5", "3", "1", "4", "2"].map((n) => NUMBER + n)) await list.add("acc_1", number);
    const first = await list.get("acc_1", `${NUMBER}3`);
    await world.runtime.clock.advance(1_000);
    assert.deepEqual(await list.add("acc_1", `${NUMBER}3`), first);
    const page = await list.page("acc_1", { page: 2, limit: 2 });
    assert.deepEqual([page.optOuts.map(({ number }) => number), page.total], [[`${NUMBER}3`, `${NUMBER}4`], 5]);
    assert.deepEqual(await list.page("acc_2", { page: 1, limit: 20 }), { optOuts: [], total: 0 });
    await assert.rejects(list.get("acc_2", `${NUMBER}3`), { code: "not_found" });
  }));

const hears = (world: World, fields: Parameters<typeof plainIncoming>[0]) =>
  world.network.of("ses_1").receive(plainIncoming({
    networkId: world.runtime.ids.network(),
    timestamp: Math.floor(world.clock.now() / 1000),
    ...fields,
  }));

Deno.test("what waits for who opts out ends as failed with that code, scheduled messages too, and nothing else", async () => {
  const world = await connectedWorld({ delays: { minMs: 60_000, maxMs: 60_000 } });
  await world.accept("ses_1", { to: OTHER });
  await world.clock.advance(0);
  const waits = [
    await world.accept("ses_1", { to: NUMBER }),
    await world.accept("ses_1", { to: `${NUMBER}@s.whatsapp.net`, sendAt: world.clock.now() + 3_600_000 }),
  ];
  const other = await world.accept("ses_1", { to: OTHER });
  await world.optOuts.add(ACCOUNT, NUMBER);
  for (const { id } of waits) assert.equal((await world.message(id)).error?.code, "recipient_opted_out");
  assert.equal((await world.events("message.failed")).length, 2);
  await world.clock.advance(120_000);
  assert.equal((await world.message(other.id)).status, "sent");
  // As a crash leaves it: on the list, and in the queue.
  const left = await world.accept("ses_1", { to: NUMBER });
  await world.clock.advance(120_000);
  assert.equal((await world.message(left.id)).error?.code, "recipient_opted_out", "it does not leave either");
  await world.supervisor.stop();
});

Deno.test("a number that is put on the list is not written to at the LID either that the line knows it by", async () => {
  const world = await connectedWorld();
  world.network.numbers.set("77@lid", NUMBER);
  const waits = await world.accept("ses_1", { to: "77@lid", sendAt: world.clock.now() + 3_600_000 });
  const other = await world.accept("ses_1", { to: "88@lid", sendAt: world.clock.now() + 3_600_000 });
  await world.optOuts.add(ACCOUNT, NUMBER);
  assert.equal((await world.message(waits.id)).error?.code, "recipient_opted_out");
  assert.equal((await world.message(other.id)).status, "queued");
  assert.deepEqual(await optedOutAmong(world.kv, ACCOUNT, [NUMBER, "77@lid", "88@lid"]), new Set([NUMBER, "77@lid"]));
  await world.optOuts.remove(ACCOUNT, NUMBER);
  assert.deepEqual(await optedOutAmong(world.kv, ACCOUNT, [NUMBER, "77@lid"]), new Set());
  await world.supervisor.stop();
});

Deno.test("who writes one of the account's words is on the list, with one event, by number and by LID", async () => {
  const world = await connectedWorld();
  world.optOutWords = ["STOP", "Nein danke"];
  const waiting = await world.accept("ses_1", { to: "77@lid", sendAt: world.clock.now() + 3_600_000 });
  await hears(world, { chat: "77@lid", number: NUMBER, text: "  stop!! " });
  await hears(world, { chat: "77@lid", number: NUMBER, text: "nein, danke" });
  await hears(world, { chat: "77@lid", number: NUMBER, text: "NEIN DANKE." });
  await hears(world, { chat: "88@lid", number: null, text: "Stop" });
  const events = await world.events("recipient.opted_out");
  assert.deepEqual(events.map(({ data }) => data), [{ number: NUMBER, word: "STOP" }, {
    number: "88@lid",
    word: "STOP",
  }]);
  assert.equal((await world.events("message.received")).length, 4, "they are messages all the same");
  assert.equal((await world.message(waiting.id)).error?.code, "recipient_opted_out");
  const { optOuts } = await world.optOuts.page(ACCOUNT, { page: 1, limit: 20 });
  assert.deepEqual(optOuts.map(({ number, word }) => [number, word]), [[NUMBER, "STOP"], ["88@lid", "STOP"]]);
  await world.supervisor.stop();
});

Deno.test("who writes a word from a number, or is listed by LID, is not written to under the other name either", async () => {
  const world = await connectedWorld();
  world.optOutWords = ["STOP"];
  world.network.numbers.set("77@lid", NUMBER).set("88@lid", OTHER);
  const waits = await world.accept("ses_1", { to: "77@lid", sendAt: world.clock.now() + 3_600_000 });
  await hears(world, { chat: `${NUMBER}@s.whatsapp.net`, number: NUMBER, text: "STOP" });
  await world.optOuts.add(ACCOUNT, "88@lid");
  const names = [NUMBER, "77@lid", OTHER, "88@lid"];
  assert.deepEqual(await optedOutAmong(world.kv, ACCOUNT, names), new Set(names));
  assert.equal((await world.message(waits.id)).error?.code, "recipient_opted_out");
  assert.equal((await world.optOuts.add(ACCOUNT, "77@lid")).number, NUMBER, "one person, one entry");
  assert.equal((await world.optOuts.get(ACCOUNT, OTHER)).number, "88@lid");
  await world.optOuts.remove(ACCOUNT, "77@lid");
  await world.optOuts.remove(ACCOUNT, OTHER);
  assert.deepEqual(await optedOutAmong(world.kv, ACCOUNT, names), new Set());
  await world.supervisor.stop();
});

Deno.test("an entry covers the other name of its person from the message on that tells it", async () => {
  const world = await connectedWorld();
  world.optOutWords = ["STOP"];
  const sendAt = world.clock.now() + 3_600_000;
  const waits = await world.accept("ses_1", { to: NUMBER, sendAt });
  await hears(world, { chat: "77@lid", number: null, text: "STOP" });
  assert.equal((await world.message(waits.id)).status, "queued", "nobody knows yet");
  world.network.numbers.set("77@lid", NUMBER);
  await hears(world, { chat: `${NUMBER}@s.whatsapp.net`, number: NUMBER, text: "by the way" });
  assert.equal((await world.message(waits.id)).error?.code, "recipient_opted_out");
  await world.optOuts.add(ACCOUNT, OTHER);
  await hears(world, { chat: "88@lid", number: OTHER, text: "a first word" });
  const names = [NUMBER, "77@lid", OTHER, "88@lid"];
  assert.deepEqual(await optedOutAmong(world.kv, ACCOUNT, names), new Set(names));
  assert.equal((await world.optOuts.page(ACCOUNT, ALL)).total, 2, "one person, one entry");
  assert.equal((await world.events("recipient.opted_out")).length, 1);
  await world.supervisor.stop();
});

Deno.test("of two entries for one person, listed before anybody knew, each is whole without the other", async () => {
  const world = await connectedWorld();
  for (const name of ["77@lid", NUMBER]) await world.optOuts.add(ACCOUNT, name);
  world.network.numbers.set("77@lid", NUMBER);
  for (const name of ["77@lid", NUMBER]) await world.optOuts.add(ACCOUNT, name);
  await world.optOuts.remove(ACCOUNT, NUMBER);
  assert.deepEqual(await optedOutAmong(world.kv, ACCOUNT, [NUMBER, "77@lid"]), new Set(["77@lid"]));
  await world.optOuts.remove(ACCOUNT, "77@lid");
  assert.equal((await world.optOuts.page(ACCOUNT, ALL)).total, 0);
  await world.supervisor.stop();
});

Deno.test("a word inside a text, in a group, or from the owner's phone opts nobody out", async () => {
  const world = await connectedWorld();
  world.optOutWords = ["STOP"];
  await hears(world, { text: "do not stop" });
  await hears(world, { text: "!!" });
  await hears(world, { text: null });
  await hears(world, { text: "STOP", chat: "1203@g.us", participant: "49@s.whatsapp.net" });
  await hears(world, { text: "STOP", fromMe: true });
  assert.deepEqual(await world.events("recipient.opted_out"), []);
  await world.supervisor.stop();
});

Deno.test("a crash after a word was heard loses nothing: given again, the number is on the list once", async () => {
  for (let after = 1; after < 4; after++) {
    const world = await connectedWorld({ seed: after });
    world.optOutWords = ["STOP"];
    const said = { networkId: "3ASTOP", number: NUMBER, chat: `${NUMBER}@s.whatsapp.net`, text: "STOP" };
    world.kv.commitsLeft = after - 1;
    hears(world, said).catch(() => {});
    await world.clock.advance(100);
    world.crash();
    await world.boot();
    await world.clock.advance(100);
    await hears(world, said);
    assert.equal((await world.events("recipient.opted_out")).length, 1, `killed after ${after - 1} commits`);
    assert.equal((await world.events("message.received")).length, 1);
    await world.supervisor.stop();
  }
});

const ALL = { page: 1, limit: 20 };

Deno.test("who opts out under a new LID is not written to under an older one", () =>
  withSendWorld(async (world) => {
    const [old, lid] = ["111@lid", "222@lid"];
    const line = { lineId: "ses_1", accountId: "acc_1" };
    const chats = chatsOn(world.kv);
    const change = new Change();
    const row = { accountId: "acc_1", id: "A", timestamp: 1, author: null, type: "conversation", text: "hi" } as const;
    await chats.append(change, line, { address: old, row, now: 1, unread: () => 1 });
    await world.kv.commit(change);
    await chats.note(line, old, { lid });
    await listOf(world, { chats, linesOf: () => Promise.resolve([line.lineId]) }).add("acc_1", lid);
    assert.deepEqual(await optedOutAmong(world.kv, "acc_1", [old, lid, NUMBER]), new Set([old, lid]));
  }));
