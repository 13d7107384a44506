import assert from "node:assert/strict";
import { denoKvEngine } from "../../../src/store/deno_kv/deno_kv.ts";
import { newLine } from "../../../src/line/line.ts";
import { migrations as all } from "../../../src/ops/migrations.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { LineQueue } from "../../../src/message/queue/queue.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { type FileRecord, mediaKeys } from "../../../src/media/rows.ts";
import { dataKeys } from "../../../src/data/rows.ts";
import { accountKeys } from "../../../src/account/rows.ts";
import { eventKeys } from "../../../src/event/rows.ts";
import { Change, key, type Kv, prefix } from "../../../src/store/kv.ts";
import { migrate, type Migration } from "../../../src/data/migrate.ts";
import { testRuntime } from "../../support/runtime.ts";
import { testEvents } from "../../support/bell.ts";

async function withKv(run: (kv: Kv) => Promise<void>): Promise<void> {
  const native = await Deno.openKv(":memory:");
  const kv = denoKvEngine({ writes: native, reads: native }, { runtime: testRuntime() });
  try {
    await run(kv);
  } finally {
    kv.close();
  }
}

const migrations = all.filter(({ to }) => to <= 4);

const steps = (ran: number[], fails: () => boolean = () => false): Migration[] =>
  [2, 3].map((to) => ({
    to,
    about: `step to ${to}`,
    run(kv) {
      ran.push(to);
      if (fails()) return Promise.reject(new Error("cut short"));
      return kv.commit(new Change().set(["converted", to], true)).then(() => {});
    },
  }));

const versionOf = async (kv: Kv) => (await kv.get(dataKeys.schemaVersion())).value;

Deno.test("older data goes through every step in order, once", () =>
  withKv(async (kv) => {
    await kv.commit(new Change().set(dataKeys.schemaVersion(), 1));
    const ran: number[] = [];
    for (let i = 0; i < 2; i++) await migrate(kv, { runtime: testRuntime(), migrations: steps(ran) });
    assert.deepEqual(ran, [2, 3]);
    assert.equal(await versionOf(kv), 3);
  }));

Deno.test("a step that was cut short runs again", () =>
  withKv(async (kv) => {
    await kv.commit(new Change().set(dataKeys.schemaVersion(), 1));
    const ran: number[] = [];
    const failing = steps(ran, () => ran.length === 2);
    await assert.rejects(migrate(kv, { runtime: testRuntime(), migrations: failing }), /cut short/);
    assert.equal(await versionOf(kv), 2);
    assert.equal(await migrate(kv, { runtime: testRuntime(), migrations: failing }), 3);
    assert.deepEqual(ran, [2, 3, 3]);
  }));

Deno.test("newer data is refused with a word on what to do, and nothing is written", () =>
  withKv(async (kv) => {
    await kv.commit(new Change().set(dataKeys.schemaVersion(), 4));
    const tried = migrate(kv, { runtime: testRuntime(), migrations: steps([]) });
    await assert.rejects(tried, { code: "data_too_new" });
    await assert.rejects(tried, /version 4.*up to 3.*newer version/s);
    assert.equal(await versionOf(kv), 4);
  }));

Deno.test("received files of version 1 are found by when they end, also when the conversion is cut short", () =>
  withKv(async (kv) => {
    const file = (i: number): FileRecord => ({
      id: `med_${String(i).padStart(4, "0")}`,
      accountId: "acc_1",
      size: i,
      sha256: "00",
      mimetype: "image/png",
      filename: "a.png",
      expiresAt: i % 3 === 0 ? null : i + 100,
    });
    const files = Array.from({ length: 1_200 }, (_, i) => file(i));
    for (let at = 0; at < files.length; at += 400) {
      const change = new Change();
      for (const each of files.slice(at, at + 400)) change.set(mediaKeys.file(each.id), each);
      await kv.commit(change);
    }
    await kv.commit(new Change().set(dataKeys.schemaVersion(), 1).set(mediaKeys.fileEnd(101, "med_0001"), 1));
    assert.equal(await migrate(kv, { runtime: testRuntime(), migrations }), 4);
    const found: [unknown, unknown, number][] = [];
    for await (const { key, value } of kv.list({ prefix: mediaKeys.fileEnds() })) found.push([key[1], key[2], value]);
    const received = files.filter(({ expiresAt }) => expiresAt !== null);
    assert.deepEqual(found, received.map(({ id, size, expiresAt }) => [expiresAt, id, size]));
  }));

Deno.test("accounts of version 2 go on in their event order where the shared one stood, also when cut short", () =>
  withKv(async (kv) => {
    const runtime = testRuntime();
    // Ahead of the clock, as after it was set back.
    const stood = (runtime.clock.now() + 3_600_000) * 1000;
    const shared = key<number>("store", "order");
    const accounts = ["acc_1", "acc_2", "acc_3"];
    const change = new Change().set(dataKeys.schemaVersion(), 2).set(shared, stood);
    for (const id of accounts) {
      const plain = { id, name: id, plan: "free", active: true, expiresAt: null, createdAt: 1 };
      change.set(accountKeys.account(id), {
        ...plain,
        allowedIps: [],
        allowedDomains: [],
        keyHash: "00",
        sealedKey: new Uint8Array(1),
      });
    }
    // Converted by a run that was cut short, and raised since.
    change.set(eventKeys.eventOrder("acc_2"), stood + 5);
    await kv.commit(change);
    assert.equal(await migrate(kv, { runtime, migrations }), 4);
    const orders = await kv.getMany(accounts.map((id) => eventKeys.eventOrder(id)));
    assert.deepEqual(orders.map(({ value }) => value), [stood, stood + 5, stood]);
    assert.equal((await kv.get(shared)).value, null);

    const log = testEvents(kv, runtime);
    const next = new Change();
    const event = { event: "session.qr", sessionId: "ses_1", sessionName: "a", data: { qr: "data:" } } as const;
    const appended = log.append(next, { ...event, accountId: "acc_1" });
    assert.ok(await kv.commit(next));
    assert.ok(appended.id! > `evt_${stood}`, "a cursor of the old order lies before every new event");
  }));

Deno.test("lines of version 3 keep what is wanted of them, under its generation", () =>
  withKv(async (kv) => {
    const { generation: _, observedGeneration: __, ...line } = newLine({
      id: "ses_1",
      accountId: "acc_1",
      name: "Front desk",
      pairingPhone: null,
      createdAt: 1,
    });
    const before = { ...line, wanted: "paused", wishNumber: 7, takenWish: 6 };
    const converted = { ...newLine({ ...line, id: "ses_2" }), generation: 3, observedGeneration: 3 };
    await kv.commit(
      new Change().set(dataKeys.schemaVersion(), 3).set<unknown>(lineKeys.line("ses_1"), before)
        .set(lineKeys.line("ses_2"), converted),
    );
    await migrate(kv, { runtime: testRuntime(), migrations });
    const rows = await kv.getMany([lineKeys.line("ses_1"), lineKeys.line("ses_2")]);
    assert.deepEqual(rows.map(({ value }) => value), [
      { ...line, wanted: "paused", generation: 7, observedGeneration: 6 },
      converted,
    ]);
  }));

Deno.test("a queue of version 4 keeps its order when it gets priorities, and what was on its way goes first", () =>
  withKv(async (kv) => {
    await kv.commit(new Change().set(dataKeys.schemaVersion(), 4));
    const old = (number: number, fields: Record<string, unknown> = {}) => ({
      id: `msg_${number}`,
      accountId: "acc_1",
      sessionId: "ses_1",
      networkId: `3A${number}`,
      position: number,
      historyNumber: number,
      to: `3460000000${number % 3}`,
      content: { kind: "text", text: "hello" },
      bulkId: null,
      status: "queued",
      attempts: 0,
      createdAt: 1,
      ...fields,
    });
    const messages = [
      old(1, { status: "sent" }),
      old(2, { status: "processing", attempts: 1 }),
      ...[3, 4, 5].map((number) => old(number, { bulkId: "blk_1" })),
    ];
    const change = new Change().set(key("bulk", "blk_1"), { accountId: "acc_1", sessionId: "ses_1", total: 3 });
    for (const message of messages) {
      change.set(key("message", message.id), message);
      // A row of one that has ended was left, too.
      change.set(key("queue", "ses_1", message.position), { messageId: message.id, bulkId: message.bulkId });
    }
    await kv.commit(change);
    for (let i = 0; i < 2; i++) {
      await migrate(kv, { runtime: testRuntime(), migrations: all.filter(({ to }) => to === 5) });
      const waiting = await Array.fromAsync(new LineQueue(kv, "ses_1").each(10), ({ id, priority }) => [id, priority]);
      assert.deepEqual(waiting, [2, 3, 4, 5].map((number) => [`msg_${number}`, "normal"]));
      assert.equal((await Array.fromAsync(kv.list({ prefix: prefix("queue") }))).length, 4);
      assert.equal(
        (await Array.fromAsync(kv.list({ prefix: messageKeys.queueOfChat("ses_1", "34600000002") }))).length,
        2,
      );
      assert.equal((await kv.get(lineKeys.pacing("ses_1"))).value?.departing, "msg_2");
      assert.equal((await kv.get(messageKeys.bulk("blk_1"))).value?.firstHistoryNumber, 3);
      assert.equal((await kv.get(messageKeys.message("msg_1"))).value?.sendAt, null);
      // Cut short before its version was written, it runs again.
      await kv.commit(new Change().set(dataKeys.schemaVersion(), 4));
    }
  }));
