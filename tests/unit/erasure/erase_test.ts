import assert from "node:assert/strict";
import { chatsOn } from "../../support/chats.ts";
import { testBell, testEvents } from "../../support/bell.ts";
import { erasePeople } from "../../../src/erasure/erase.ts";
import { makeErasures } from "../../../src/erasure/erasures.ts";
import { erasureKeys } from "../../../src/erasure/rows.ts";
import { mediaKeys } from "../../../src/media/rows.ts";
import { keepFile } from "../../../src/media/store.ts";
import type { Message } from "../../../src/message/message.ts";
import { type MessageRow, Recorder } from "../../../src/message/record.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change, type Kv, StoreError } from "../../../src/store/kv.ts";
import { FakeNetwork } from "../../support/fake_network.ts";
import { aBulk, aSend, type SendWorld, withSendWorld } from "../../support/send_world.ts";

const ACCOUNT = "acc_1";
const ANA = "34699999999";
const BEN = "34688888888";
const LID = "123456789012345@lid";

/** An account that wrote to Ana and Ben, and heard of both: Ana's first message is still on its way. */
async function aPast({ kv, runtime, accept }: SendWorld) {
  const events = testEvents(kv, runtime);
  const removed: string[] = [];
  const files = { remove: (id: string) => Promise.resolve(void removed.push(id)) };
  const recorder = new Recorder({
    kv,
    chats: chatsOn(kv),
    runtime,
    events,
    sessionName: () => Promise.resolve("one"),
    files,
  });
  const network = new FakeNetwork(runtime.clock);
  network.numbers.set(LID, ANA);
  const ids: string[] = [];
  for (const to of [ANA, BEN, LID, `${ANA}@s.whatsapp.net`, BEN, ANA]) {
    const content = { kind: "text" as const, text: to === BEN ? `Ana has +34 699-999-999` : "hello Ana" };
    ids.push((await accept(aSend({ items: [{ to, content }] }))).messages[0]!.id);
  }
  await accept(aBulk(40));
  for (const [i, id] of ids.slice(0, 5).entries()) {
    const row = await recorder.dispatch(await messageRow(kv, id));
    if (i > 0) await recorder.acknowledge({ row: row!, at: runtime.clock.now() });
  }
  const about = { accountId: ACCOUNT, sessionId: "ses_1", sessionName: "one" };
  const change = new Change();
  for (const [number, chat] of [[ANA, LID], [BEN, `${BEN}@s.whatsapp.net`]] as const) {
    const id = `med_${number}`;
    keepFile(change, {
      id,
      accountId: ACCOUNT,
      size: 1,
      sha256: "",
      mimetype: "text/plain",
      filename: "",
      expiresAt: 5,
    });
    events.append(change, {
      ...about,
      event: "message.received",
      data: {
        from: chat,
        chat,
        number,
        pushName: null,
        messageId: "1",
        timestamp: 1,
        type: "documentMessage",
        text: null,
        media: { url: `http://x/media/${id}?expires=1`, mimetype: "", size: 1, filename: "" },
        isForwarded: false,
      },
    });
  }
  await kv.commit(change);
  const bell = testBell(runtime);
  const deps = { runtime, bell, network, recorder, media: files };
  return { ids, recorder, network, removed, deps };
}

/** Lets time pass until the work has ended. */
async function passing<T>({ runtime }: SendWorld, work: Promise<T>): Promise<T> {
  let over = false;
  work.then(() => over = true, () => over = true);
  while (!over) await runtime.clock.advance(20);
  return await work;
}

/** Runs turn after turn, but not for ever. */
async function turns(world: SendWorld, run: () => Promise<number>, isOver: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 60 && !await isOver(); turn++) await passing(world, run());
}

const messageRow = async (kv: Kv, id: string) => await kv.get(messageKeys.message(id)) as MessageRow;
const rowOf = async (kv: Kv) => (await kv.get(erasureKeys.erasure(ACCOUNT, ANA))).value;

Deno.test("a person is erased the same however often it is cut short, and what was on its way follows", () =>
  withSendWorld(async (world) => {
    const { kv, runtime, history } = world;
    const { ids, recorder, network, removed, deps } = await aPast(world);
    const erasures = makeErasures({ kv, runtime, bell: deps.bell });
    const asked = await passing(world, erasures.begin(ACCOUNT, { name: ANA, keyId: null }));
    assert.equal(asked.doneAt, null, "nobody has begun");

    // Each turn dies at its third commit.
    let commits = 0;
    const dying: Kv = {
      ...kv,
      commit: (change) =>
        ++commits % 3 === 0 ? Promise.reject(new StoreError("unavailable", "killed")) : kv.commit(change),
    };
    const run = () => erasePeople({ ...deps, kv: dying }, new AbortController().signal).catch(() => 0);
    await turns(world, run, async () => (await rowOf(kv))?.again === true);
    await recorder.acknowledge({ row: await messageRow(kv, ids[0]!), at: runtime.clock.now() });
    await turns(world, run, async () => await rowOf(kv) === null);

    const { erasures: [done] } = await erasures.page(ACCOUNT, { page: 1, limit: 20 });
    const { messages, files, status } = { ...done!, status: done!.doneAt === null };
    assert.deepEqual([messages, files, status], [6, 1, false]);
    assert.deepEqual(removed.filter((id) => id.includes(BEN)), []);
    assert.ok(removed.includes(`med_${ANA}`));
    assert.deepEqual(
      (await kv.getMany([mediaKeys.file(`med_${ANA}`), mediaKeys.file(`med_${BEN}`)])).map(({ value }) => value?.id),
      [undefined, `med_${BEN}`],
    );
    assert.ok(network.erased.length >= 6, "copies of what was sent, and the line");

    const page = (query: object) => history.page(ACCOUNT, { page: 1, limit: 100, ...query });
    assert.equal((await page({})).total, 46);
    assert.equal((await page({ type: "text" })).total, 46);
    for (const recipient of [ANA, LID]) assert.equal((await page({ recipient })).total, 0);
    const toBen = await page({ recipient: BEN });
    assert.deepEqual(toBen.messages.map(({ content }) => content), [
      { kind: "text", text: "Ana has +[erased]" },
      { kind: "text", text: "Ana has +[erased]" },
    ]);
    assert.deepEqual([(await page({ status: "sent" })).total, (await page({ status: "failed" })).total], [5, 1]);
    const said: string[] = [];
    for (
      const family of [
        "message",
        "event",
        "queue",
        "chat_queue",
        "message_of_network_id",
        "history_numbers",
        "erasure",
        "erasure_done",
      ]
    ) {
      for await (const { key, value } of kv.list<unknown>({ prefix: [family] })) {
        const text = JSON.stringify([key, value], (_, each) => typeof each === "bigint" ? `${each}` : each);
        if (/34699999999|123456789012345|699-999/.test(text)) said.push(text);
      }
    }
    assert.deepEqual(said, []);
    const { value: first } = await kv.get<Message>(messageKeys.message(ids[0]!));
    assert.deepEqual([first!.to, first!.networkId, first!.status], ["", "", "sent"]);
  }));

Deno.test("an account waits for its own erasures, not for another's", () =>
  withSendWorld(async (world) => {
    const { kv, runtime } = world;
    const { deps } = await aPast(world);
    const erasures = makeErasures({ kv, runtime, bell: deps.bell });
    const asked = [[ACCOUNT, "34600000002"], [ACCOUNT, "34600000001"], ["acc_2", "34600000002"]] as const;
    const ids: string[] = [];
    for (const [account, name] of asked) {
      ids.push((await passing(world, erasures.begin(account, { name, keyId: "key_1" }))).id);
    }
    const again = await passing(world, erasures.begin(ACCOUNT, { name: asked[0][1], keyId: null }));
    assert.equal(again.id, ids[0], "asked again it is the same");

    // Whose row each piece of work moved on, in order.
    const moved: string[] = [];
    const seen: Kv = {
      ...kv,
      commit: (change) => {
        for (const { key } of change.checks) if (key[0] === "erasure") moved.push(key.slice(1).join("/"));
        return kv.commit(change);
      },
    };
    const run = () => erasePeople({ ...deps, kv: seen }, new AbortController().signal);
    await turns(world, run, async () => (await erasures.get(ACCOUNT, ids[1]!)).doneAt !== null);
    const [first, second, others] = asked.map((names) => names.join("/")) as [string, string, string];
    assert.ok(moved.includes(first) && moved.includes(others));
    assert.ok(moved.lastIndexOf(first) < moved.indexOf(second), "the account's second comes after its first");
    assert.ok(moved.indexOf(others) < moved.indexOf(second), "another account does not wait for both");

    await turns(world, run, async () => (await erasures.get("acc_2", ids[2]!)).doneAt !== null);
    assert.deepEqual((await erasures.page("acc_2", { page: 1, limit: 20 })).erasures.map(({ keyId }) => keyId), [
      "key_1",
    ]);
    await assert.rejects(erasures.get("acc_2", ids[0]!), { code: "not_found" });
  }));

Deno.test("an erasure that fails holds up no other account's, and goes on when it can", () =>
  withSendWorld(async (world) => {
    const { kv, runtime } = world;
    const { deps } = await aPast(world);
    const erasures = makeErasures({ kv, runtime, bell: deps.bell });
    const ids: string[] = [];
    for (const account of [ACCOUNT, "acc_2"]) {
      ids.push((await passing(world, erasures.begin(account, { name: ANA, keyId: null }))).id);
    }
    let isAway = true;
    const away = () => Promise.reject(new StoreError("unavailable", "the bucket is away"));
    const media = { remove: (id: string) => isAway ? away() : deps.media.remove(id) };
    const run = () => erasePeople({ ...deps, kv, media }, new AbortController().signal);
    const isDone = async (account: string, id: string) => (await erasures.get(account, id)).doneAt !== null;
    const hasFailed = () => runtime.lines.some(({ error }) => String(error).includes("the bucket is away"));
    await turns(world, run, async () => hasFailed() && await isDone("acc_2", ids[1]!));
    assert.deepEqual(
      [hasFailed(), await isDone(ACCOUNT, ids[0]!), await isDone("acc_2", ids[1]!)],
      [true, false, true],
    );
    isAway = false;
    await turns(world, run, async () => (await rowOf(kv))?.files === 1);
    assert.equal((await rowOf(kv))?.files, 1);
  }));
