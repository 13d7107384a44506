/** A line moves with what waits on it: each message once, under its id, whatever dies on the way. */
import { ringWanted } from "../../../src/line/live.ts";
import assert from "node:assert/strict";
import { exportLine, importLine } from "../../../src/line/transfer.ts";
import { makeAccountLines, makeSendingLine } from "../../../src/line/account_lines.ts";
import { EXPORTED_REASON, EXPORTING_REASON, type Line, openedProxy, sealedProxy } from "../../../src/line/line.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { utcDay } from "../../../src/account/quota.ts";
import { Problem } from "../../../src/errors.ts";
import { EMPTY_LEDGER } from "../../../src/message/history/ledger.ts";
import { LineQueue } from "../../../src/message/queue/queue.ts";
import { type Ledger, messageKeys } from "../../../src/message/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { ringQueue } from "../../../src/message/queue/place.ts";
import { ACCOUNT, connectedWorld, SEAL, World } from "../../support/line_world.ts";
import { commandOn, FILE, oldPlace } from "../../support/moving.ts";
import { until } from "../../support/until.ts";

const PASSPHRASE = "correct horse battery";
const discard = () => Promise.resolve();

async function exported(old: Awaited<ReturnType<typeof oldPlace>>): Promise<Uint8Array> {
  let written: Uint8Array | undefined;
  const write = (file: Uint8Array) => Promise.resolve(void (written = file));
  const { messages } = await exportLine(old.deps, "ses_1", {
    passphrase: PASSPHRASE,
    gatewayRuns: false,
    discard,
    write,
  });
  assert.equal(messages, 5);
  return written!;
}

Deno.test("what waits goes with its line, in order and under its ids, and ends as moved where it was", async () => {
  const old = await oldPlace();
  const file = await exported(old);
  await old.world.boot();
  // Past the time of the one that was for later.
  await old.world.clock.advance(120_000);
  assert.deepEqual(old.world.network.departures, []);
  for (const { id } of old.messages) {
    const { status, error } = await old.world.message(id);
    assert.deepEqual([status, error?.code], ["failed", "moved"]);
  }
  await old.world.supervisor.stop();

  const world = new World();
  await world.boot();
  const files = new Map<string, Uint8Array>();
  const { deps } = commandOn(world, files);
  const { line, messages } = await importLine(deps, ACCOUNT, { passphrase: PASSPHRASE, file });
  assert.deepEqual([line.phone, messages], ["34600000001", 5]);
  assert.deepEqual([...files.values()], [FILE]);
  await world.clock.advance(30_000);
  const [a, b, later, high, c] = old.messages;
  const sent = () => world.network.departures.map(({ networkId }) => networkId);
  const ids = (...messages: (typeof a)[]) => messages.map((message) => message!.networkId);
  // All are to one chat, whose order no priority changes.
  assert.deepEqual(sent(), ids(a, b, high, c));
  await world.clock.advance(60_000);
  assert.deepEqual(sent(), ids(a, b, high, c, later));
  assert.equal((await world.message(a!.id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("an export that fails after one that was killed restores what was wanted before both", async () => {
  for (const wanted of ["connected", "paused"] as const) {
    const { kv, deps } = await oldPlace();
    const line = async () => (await kv.get<Line>(lineKeys.line("ses_1"))).value!;
    await kv.commit(new Change().set(lineKeys.line("ses_1"), { ...await line(), wanted }));
    const options = { passphrase: PASSPHRASE, gatewayRuns: false, discard };
    const killed = Promise.withResolvers<void>();
    const write = () => (killed.resolve(), new Promise<void>(() => {}));
    void exportLine(deps, "ses_1", { ...options, write });
    await killed.promise;
    const full = () => Promise.reject(new Error("the disk is full"));
    await assert.rejects(exportLine(deps, "ses_1", { ...options, write: full }), /the disk is full/);
    assert.equal((await line()).wanted, wanted);
  }
});

Deno.test("an export fails, and leaves what the owner asked for meanwhile: the line may have sent what the file holds", async () => {
  for (const error of [new Error("the disk is full"), null]) {
    const { kv, deps, world } = await oldPlace();
    const line = async () => (await kv.get<Line>(lineKeys.line("ses_1"))).value!;
    const write = async () => {
      const { generation, ...rest } = await line();
      const asked: Line = { ...rest, wanted: "logged_out", generation: generation + 1 };
      await kv.commit(new Change().set(lineKeys.line("ses_1"), asked));
      if (error) throw error;
    };
    let isDiscarded = false;
    const discard = () => Promise.resolve(void (isDiscarded = true));
    const options = { passphrase: PASSPHRASE, gatewayRuns: false, discard, write };
    await assert.rejects(exportLine(deps, "ses_1", options), error ?? /export it again/);
    assert.equal(isDiscarded, error === null, "a complete file of a line that stays");
    assert.equal((await line()).wanted, "logged_out");
    assert.equal(world.network.linked.has("ses_1"), true);
  }
});

Deno.test("a line goes out as it did, keeps its pauses and what it may, and its queue stays held", async () => {
  const old = await oldPlace();
  const { value: line } = await old.kv.get<Line>(lineKeys.line("ses_1"));
  const proxy = "socks5://me:secret@proxy.example:1080";
  const restriction = { kind: "DEFAULT", until: old.world.clock.now() + 3_600_000 };
  const at = old.world.clock.now();
  const pacing = { lastDepartureAt: at, nextDepartureAt: at + 1_000, departures: 7, firstDepartureAt: at - 1_000 };
  await old.kv.commit(
    new Change().set(lineKeys.line("ses_1"), { ...line!, proxy: sealedProxy(proxy, SEAL), restriction })
      .set(lineKeys.pacing("ses_1"), pacing).set(lineKeys.queuePaused("ses_1"), true),
  );
  const file = await exported(old);
  const world = new World();
  await world.boot();
  const { deps, kv } = commandOn(world);
  const { line: made } = await importLine(deps, ACCOUNT, { passphrase: PASSPHRASE, file });
  assert.deepEqual([made.proxy?.shown, openedProxy(made, SEAL)], ["socks5://proxy.example:1080", proxy]);
  assert.deepEqual(made.restriction, restriction);
  assert.deepEqual((await kv.get(lineKeys.pacing(made.id))).value, pacing);
  await world.clock.advance(120_000);
  assert.deepEqual(world.network.departures, []);
  assert.deepEqual(world.network.connections.map(({ options }) => options.proxy), [proxy]);
  await kv.commit(new Change().delete(lineKeys.queuePaused(made.id)));
  ringQueue(world.bell, made.id);
  await world.clock.advance(1_000);
  assert.equal(world.network.departures.length > 0, true);
  await world.supervisor.stop();
});

Deno.test("what is cancelled where it came to gives back no quota: the gateway that it came from has charged it", async () => {
  const file = await exported(await oldPlace());
  const world = new World();
  await world.boot();
  const { deps, kv } = commandOn(world);
  const day = utcDay(world.clock.now());
  const usage = { day, daily: 3, month: day.slice(0, 7), monthly: 3 };
  await kv.commit(new Change().set(messageKeys.ledger(ACCOUNT), { ...EMPTY_LEDGER, usage }));
  const { line } = await importLine(deps, ACCOUNT, { passphrase: PASSPHRASE, file });
  const [waiting] = await Array.fromAsync(new LineQueue(kv, line.id).each(1));
  await world.queued.cancel(ACCOUNT, waiting!.id);
  assert.deepEqual((await kv.get<Ledger>(messageKeys.ledger(ACCOUNT))).value?.usage, usage);
  await world.supervisor.stop();
});

Deno.test("an import that dies at any commit and is run again puts each message in once", async () => {
  const old = await oldPlace();
  const file = await exported(old);
  const importing = { passphrase: PASSPHRASE, file };
  let died = true;
  for (let commits = 0; died; commits++) {
    const world = new World();
    await world.boot();
    const dying = commandOn(world);
    dying.kv.commitsLeft = commits;
    died = await importLine(dying.deps, ACCOUNT, importing).then(() => false, () => true);
    const { deps } = commandOn(world);
    const { line } = await importLine(deps, ACCOUNT, importing);
    // One more after it was done.
    if (!died) assert.equal((await importLine(deps, ACCOUNT, importing)).line.id, line.id);
    await world.clock.advance(120_000);
    const where = `died at commit ${commits}`;
    assert.equal((await Array.fromAsync(makeAccountLines(deps.kv).each(ACCOUNT))).length, 1, where);
    const departures = world.network.departures.map(({ networkId }) => networkId);
    assert.equal(departures.length, 5, where);
    assert.deepEqual(departures.toSorted(), old.messages.map(({ networkId }) => networkId).toSorted(), where);
    await world.supervisor.stop();
  }
});

Deno.test("an import whose line is deleted meanwhile leaves no message that nothing would ever end", async () => {
  const file = await exported(await oldPlace());
  const world = new World();
  await world.boot();
  const { deps, kv } = commandOn(world);
  deps.link.opened = () => async (lineId) => {
    await world.lines.want(ACCOUNT, lineId, "deleted");
  };
  const importing = importLine(deps, ACCOUNT, { passphrase: PASSPHRASE, file });
  await assert.rejects(importing, { message: /there is no session/ });
  assert.deepEqual(await Array.fromAsync(kv.list({ prefix: messageKeys.messages() })), []);
  assert.equal((await kv.get<Ledger>(messageKeys.ledger(ACCOUNT))).value, null);
  await world.supervisor.stop();
});

Deno.test("while a line is exported nothing new is accepted on it, and a file that cannot be written leaves it as it was", async () => {
  const old = await oldPlace();
  const sending = makeSendingLine(makeAccountLines(old.kv));
  const full = async () => {
    await assert.rejects(sending.forSending(ACCOUNT, "ses_1"), Problem);
    throw new Error("no room");
  };
  await assert.rejects(
    exportLine(old.deps, "ses_1", { passphrase: PASSPHRASE, gatewayRuns: false, discard, write: full }),
    /no room/,
  );
  assert.equal((await sending.forSending(ACCOUNT, "ses_1")).value.id, "ses_1");
  await old.world.boot();
  await old.world.clock.advance(30_000);
  assert.equal(old.world.network.departures.length, 4);
  await old.world.supervisor.stop();
});

Deno.test("an export that is killed after its file is on disk has given up link and queue", async () => {
  for (const dies of ["before the link is dropped", "after it"]) {
    const { world, deps, messages } = await oldPlace();
    const killed = Promise.withResolvers<void>();
    const { drop } = deps.link;
    deps.link.drop = async (lineId) => {
      if (dies === "after it") await drop(lineId);
      killed.resolve();
      await new Promise<void>(() => {});
    };
    void exportLine(deps, "ses_1", {
      passphrase: PASSPHRASE,
      gatewayRuns: false,
      discard,
      write: () => Promise.resolve(),
    });
    await killed.promise;
    await world.boot();
    const asked = world.lines.want(ACCOUNT, "ses_1", "connected");
    await world.clock.advance(10);
    assert.equal(world.network.linked.has("ses_1"), false, dies);
    world.network.of("ses_1").links();
    await world.clock.advance(120_000);
    await asked;
    const errors = await Promise.all(messages.map(async ({ id }) => (await world.message(id)).error?.code));
    assert.deepEqual([errors, world.network.departures], [Array(5).fill("moved"), []], dies);
    await world.supervisor.stop();
  }
});

Deno.test("the gateway that runs drops the link of a line that is exported, and keeps that of one whose export was killed", async () => {
  const { world, deps, kv } = await oldPlace();
  const restriction = { kind: "DEFAULT", until: null };
  await kv.commit(new Change().set(lineKeys.line("ses_1"), { ...await world.line(), restriction }));
  await world.boot();
  const options = { passphrase: PASSPHRASE, discard, gatewayRuns: true };
  const writing = Promise.withResolvers<void>();
  const killed = () => (writing.resolve(), new Promise<void>(() => {}));
  void exportLine(deps, "ses_1", { ...options, write: killed });
  await world.clock.advance(15_000);
  await writing.promise;
  assert.deepEqual([(await world.line()).reason, world.network.linked.has("ses_1")], [EXPORTING_REASON, true]);
  const exporting = exportLine(deps, "ses_1", { ...options, write: () => Promise.resolve() });
  await world.clock.advance(30_000);
  assert.equal((await exporting).messages, 1);
  const line = await world.line();
  assert.deepEqual([line.reason, line.restriction, world.network.forgotten], [EXPORTED_REASON, null, ["ses_1"]]);
  await world.supervisor.stop();
});

Deno.test("a line that is logged out on its phone as its export begins is not exported, and waits for its owner", async () => {
  const { world, deps } = await oldPlace();
  await world.boot();
  await world.clock.advance(1_000);
  const write = () => Promise.reject(new Error("there is nothing to write"));
  const options = { passphrase: PASSPHRASE, discard, gatewayRuns: true, write };
  const exporting = assert.rejects(exportLine(deps, "ses_1", options), /is not linked/);
  await until(async () => (await world.line()).wanted === "exporting", "the export to begin");
  world.network.linked.delete("ses_1");
  world.network.of("ses_1").ends("logged_out", 401);
  await world.clock.advance(15_000);
  await exporting;
  world.crash();
  await world.boot();
  await world.clock.advance(60_000);
  const { status, wanted, halted } = await world.line();
  assert.deepEqual([status, wanted, halted, world.network.connections.length], ["logged_out", "connected", true, 1]);
  await world.supervisor.stop();
});

Deno.test("what waits on a line that was exported ends as moved, also if its owner reconnects it at once", async () => {
  const world = await connectedWorld();
  await world.kv.commit(new Change().set(lineKeys.queuePaused("ses_1"), true));
  const { id } = await world.accept();
  await world.clock.advance(0);
  const line = await world.line();
  // What the export writes, and the owner before the line's session has read it.
  const left: Line = { ...line, linked: false, halted: true, status: "logged_out", reason: EXPORTED_REASON };
  await world.kv.commit(
    new Change().set(lineKeys.line("ses_1"), { ...left, wanted: "connected", generation: line.generation + 2 }),
  );
  ringWanted(world.bell, { id: "ses_1", accountId: ACCOUNT });
  await world.clock.advance(1_000);
  assert.equal((await world.message(id)).error?.code, "moved");
  assert.deepEqual(world.network.forgotten, ["ses_1"]);
  await world.supervisor.stop();
});
