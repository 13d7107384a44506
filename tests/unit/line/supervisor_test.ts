import assert from "node:assert/strict";
import { Change } from "../../../src/store/kv.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { CHANGED_TOPIC } from "../../../src/line/live.ts";
import { ACCOUNT, connectedWorld, World } from "../../support/line_world.ts";

Deno.test("lines come up one after another at boot, a hundred within 2 s", async () => {
  const world = new World();
  for (let i = 0; i < 100; i++) await world.addLine(`ses_${i}`);
  await world.boot();
  await world.clock.advance(0);
  assert.ok(world.network.connections.length < 5, "a crowd at once");
  await world.clock.advance(2_000);
  assert.equal(world.network.connections.filter(({ isOpen }) => isOpen).length, 100);
  await world.supervisor.stop();
});

Deno.test("what another process wants of a line is found within 3 s", async () => {
  const world = await connectedWorld();
  const line = await world.line();
  await world.kv.commit(new Change().set(lineKeys.line(line.id), { ...line, wanted: "paused", generation: 2 }));
  await world.clock.advance(3_000);
  assert.equal((await world.line()).status, "disconnected");
  await world.supervisor.stop();
});

Deno.test("a line that another process made is found, and one whose row is gone is let go", async () => {
  const world = await connectedWorld();
  await world.addLine("ses_2");
  await world.clock.advance(3_000);
  assert.equal((await world.line("ses_2")).status, "connected");
  await world.kv.commit(new Change().delete(lineKeys.line("ses_2")));
  await world.clock.advance(3_000);
  assert.ok(world.network.of("ses_2").isClosed);
  assert.equal(world.supervisor.connection("ses_2"), null);
  await world.supervisor.stop();
});

Deno.test("a queue that changed is heard of at once, and the bell tells of a line that did", async () => {
  const world = await connectedWorld();
  let changes = 0;
  const unwatch = world.bell.hear(`${CHANGED_TOPIC}ses_1`, () => changes++);
  const message = await world.accept("ses_1");
  await world.clock.advance(100);
  assert.equal((await world.message(message.id)).status, "sent");
  world.network.of("ses_1").events.closed({ kind: "lost", code: null, detail: "The socket dropped." });
  await world.clock.advance(100);
  assert.ok(changes > 0);
  unwatch();
  await world.supervisor.stop();
});

Deno.test("work that waited through a restart goes on within 2 s", async () => {
  const world = new World();
  for (let i = 0; i < 20; i++) await world.addLine(`ses_${i}`);
  const messages = [];
  for (let i = 0; i < 20; i++) messages.push(await world.accept(`ses_${i}`));
  await world.boot();
  await world.clock.advance(2_000);
  for (const { id } of messages) assert.equal((await world.message(id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("start and stop may be called twice, and after a stop nothing moves", async () => {
  const world = await connectedWorld();
  await world.supervisor.start();
  assert.equal(world.network.connections.length, 1);
  await Promise.all([world.supervisor.stop(), world.supervisor.stop()]);
  await world.supervisor.stop();
  assert.ok(world.network.of("ses_1").isClosed);
  const { id } = await world.accept();
  await world.clock.advance(60_000);
  assert.equal((await world.message(id)).status, "queued");
  assert.equal(world.network.connections.length, 1);
});

Deno.test("a stop does not wait for ever for an answer that does not come", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  await world.accept();
  await world.clock.advance(0);
  let stopped = false;
  void world.supervisor.stop().then(() => stopped = true);
  await world.clock.advance(8_000);
  assert.ok(stopped);
});

Deno.test("`idle` resolves when queues rest and all that happened is written", async () => {
  const world = await connectedWorld();
  for (let i = 0; i < 5; i++) await world.accept();
  await world.supervisor.idle();
  assert.equal((await world.events("message.sent")).length, 5);
  void world.lines.want(ACCOUNT, "ses_1", "paused");
  await world.clock.advance(0);
  await world.supervisor.idle();
  assert.equal((await world.line()).status, "disconnected");
  await world.supervisor.stop();
});

Deno.test("what is wanted before the line's turn at boot opens one connection, not two", async () => {
  const world = new World();
  for (let i = 1; i <= 5; i++) await world.addLine(`ses_${i}`);
  await world.boot();
  assert.throws(() => world.network.of("ses_5"), "its turn is still to come");
  void world.lines.want(ACCOUNT, "ses_5", "connected");
  await world.clock.advance(1_000);
  const open = world.network.connections.filter(({ options, isClosed }) => options.lineId === "ses_5" && !isClosed);
  assert.equal(open.length, 1);
  assert.equal((await world.line("ses_5")).status, "connected");
  await world.supervisor.stop();
});

Deno.test("a line whose pause ends before the next sweep is not looked at in this one", async () => {
  const world = await connectedWorld({ delays: { minMs: 8_000, maxMs: 8_000 } });
  for (let i = 0; i < 3; i++) await world.accept();
  await world.clock.advance(9_000);
  assert.equal(world.network.departures.length, 2);
  const looks: string[] = [];
  const list = world.kv.list.bind(world.kv);
  world.kv.list = (range, options) => {
    looks.push(String(range.prefix[0]));
    return list(range, options);
  };
  await world.clock.advance(6_000);
  assert.ok(looks.includes("line"), "there was a sweep");
  assert.deepEqual(looks.filter((family) => family.includes("queue")), []);
  await world.clock.advance(2_000);
  assert.equal(world.network.departures.length, 3);
  await world.supervisor.stop();
});

Deno.test("an idle line is not asked for: twenty cost no read more than one", async () => {
  const readsOf = async (lines: number) => {
    const world = new World();
    for (let i = 0; i < lines; i++) await world.addLine(`ses_${i}`);
    await world.boot();
    await world.clock.advance(5_000);
    let reads = 0;
    const { get, getMany, list } = world.kv;
    const counted = <Args extends unknown[], Result>(read: (...args: Args) => Result) => (...args: Args) => {
      reads++;
      return read.apply(world.kv, args);
    };
    Object.assign(world.kv, { get: counted(get), getMany: counted(getMany), list: counted(list) });
    await world.clock.advance(60_000);
    await world.supervisor.stop();
    return reads;
  };
  assert.equal(await readsOf(20), await readsOf(1));
});
