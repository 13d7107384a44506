import assert from "node:assert/strict";
import { chatsOn } from "../../support/chats.ts";
import type { EventData } from "../../../src/event/event.ts";
import { Recorder } from "../../../src/message/record.ts";
import { type Key, StoreError } from "../../../src/store/kv.ts";
import type { CloseReason } from "../../../src/whatsapp/connection.ts";
import { ACCOUNT, connectedWorld, World } from "../../support/line_world.ts";
import { isHeld } from "../../support/garbage.ts";
import { settle } from "../../support/runtime.ts";
import { until } from "../../support/until.ts";
import { testEvents } from "../../support/bell.ts";

/** A world with one new line that nobody has linked. */
async function newWorld(pairingPhone: string | null = null): Promise<World> {
  const world = new World();
  await world.addLine("ses_1", { linked: false, status: "initializing", observedGeneration: 0, pairingPhone });
  await world.boot();
  await world.clock.advance(10);
  return world;
}

async function shows(world: World, text: string): Promise<void> {
  world.network.of("ses_1").events.qr(text);
  await until(async () => (await world.line()).qr === text, `QR ${text}`);
}

/** The gateway is killed, and starts again. */
async function again(world: World): Promise<void> {
  world.crash();
  await world.boot();
  await world.clock.advance(10);
}

Deno.test("a new line shows a QR, is scanned, restarts and is connected, with an event at each step that has one", async () => {
  const world = await newWorld();
  assert.equal((await world.line()).status, "initializing");
  await shows(world, "ref1,a,b,c,1");
  assert.equal((await world.line()).status, "qr");
  await shows(world, "ref2,a,b,c,1");
  world.network.of("ses_1").links();
  await world.clock.advance(1_000);
  const line = await world.line();
  assert.equal(line.status, "connected");
  assert.equal(line.phone, "34600000001");
  assert.equal(line.linked, true);
  assert.equal(line.qr, null);
  assert.equal(line.reason, null);
  const events = await world.events();
  assert.deepEqual(events.map(({ event }) => event), ["session.qr", "session.qr", "session.connected"]);
  assert.match((events[0]!.data as { qr: string }).qr, /^data:image\/png;base64,/);
  assert.deepEqual(events[2]!.data, { phone: "34600000001" });
  await world.supervisor.stop();
});

Deno.test("a line with a pairing phone shows a code in place of a QR", async () => {
  const world = await newWorld("34600000001");
  assert.equal(world.network.of("ses_1").options.pairingPhone, "34600000001");
  world.network.of("ses_1").events.pairingCode("ABCD1234");
  await world.clock.advance(0);
  const line = await world.line();
  assert.deepEqual([line.status, line.pairingCode, line.qr], ["pairing", "ABCD1234", null]);
  world.network.of("ses_1").links();
  await world.clock.advance(0);
  assert.deepEqual([(await world.line()).status, (await world.line()).pairingCode], ["connected", null]);
  await world.supervisor.stop();
});

Deno.test("a link that nobody accepts gets a fresh QR some times, then waits until somebody asks", async () => {
  const world = await newWorld();
  for (let round = 1; round <= 5; round++) {
    assert.equal(world.network.connections.length, round);
    await shows(world, `ref${round}`);
    world.network.of("ses_1").ends("link_expired");
    await world.clock.advance(1_000);
  }
  const line = await world.line();
  assert.deepEqual([line.status, line.halted, line.qr], ["disconnected", true, null]);
  assert.match(line.reason!, /link_expired/);
  await world.clock.advance(600_000);
  assert.equal(world.network.connections.length, 5);
  // Asking for the QR is enough.
  const asked = world.lines.linking(ACCOUNT, "ses_1");
  await world.clock.advance(10);
  await shows(world, "fresh");
  const linking = await asked;
  assert.equal(linking.status, "qr");
  assert.match(linking.qr!, /^data:image\/png;base64,/);
  await world.supervisor.stop();
});

Deno.test("why the last attempt to link failed stays beside the next QR, over a restart too, until the line is linked", async () => {
  const world = await newWorld();
  const connection = () => world.network.of("ses_1");
  await shows(world, "first");
  connection().events.passkey({ stage: "confirm", code: "ABCD-EFGH", expiresAt: world.clock.now() + 60_000 });
  await until(async () => (await world.line()).passkey !== null, "the demand to compare codes");
  connection().events.passkey(null);
  connection().ends("link_expired");
  await world.clock.advance(1_000);
  await shows(world, "second");
  let line = await world.line();
  assert.deepEqual([line.status, line.reason], ["qr", "it ended: link_expired"]);

  await again(world);
  await shows(world, "third");
  assert.equal((await world.line()).reason, "it ended: link_expired");
  connection().links();
  await world.clock.advance(1_000);
  line = await world.line();
  assert.deepEqual([line.status, line.reason], ["connected", null]);
  await world.supervisor.stop();
});

Deno.test("a network that could not be reached is no attempt to link: the QR takes its reason away", async () => {
  const world = await newWorld();
  world.network.of("ses_1").ends("unavailable");
  await until(async () => (await world.line()).reason !== null, "the reason");
  await world.clock.advance(1_000);
  await shows(world, "first");
  assert.equal((await world.line()).reason, null);
  await world.supervisor.stop();
});

Deno.test("a gateway that was killed while a passkey was asked for shows the next QR without the demand", async () => {
  const world = await newWorld();
  await shows(world, "first");
  world.network.of("ses_1").events.passkey({ stage: "confirm", code: "ABCD-EFGH", expiresAt: 60_000 });
  await until(async () => (await world.line()).passkey !== null, "the demand to compare codes");
  await again(world);
  await shows(world, "second");
  assert.equal((await world.line()).reason, null);
  await world.supervisor.stop();
});

Deno.test("`reconnect` begins to link anew, without the reason of what failed before", async () => {
  const world = await newWorld();
  await shows(world, "first");
  world.network.of("ses_1").ends("link_expired");
  await world.clock.advance(1_000);
  const asked = world.lines.want(ACCOUNT, "ses_1", "connected");
  await world.clock.advance(1_000);
  await shows(world, "second");
  await asked;
  assert.equal((await world.line()).reason, null);
  await world.supervisor.stop();
});

/** What each close reason must lead to, for a line that was connected. */
const CLOSES: {
  kind: CloseReason["kind"];
  status: string;
  /** Whether it is connected again within the time. */
  backWithinMs: number | null;
  forgets?: boolean;
}[] = [
  { kind: "restart", status: "connected", backWithinMs: 0 },
  { kind: "lost", status: "disconnected", backWithinMs: 1_000 },
  { kind: "unavailable", status: "disconnected", backWithinMs: 1_000 },
  { kind: "asked", status: "disconnected", backWithinMs: 1_000 },
  { kind: "replaced", status: "disconnected", backWithinMs: null },
  { kind: "logged_out", status: "logged_out", backWithinMs: null, forgets: true },
];

for (const { kind, status, backWithinMs, forgets = false } of CLOSES) {
  Deno.test(`a connection that ends as ${kind} leaves the line ${status}, and the other line unaware`, async () => {
    const world = new World();
    await world.addLine("ses_1");
    await world.addLine("ses_2");
    await world.boot();
    await world.clock.advance(20_000);
    const eventsBefore = (await world.events()).length;
    world.network.of("ses_1").ends(kind);
    await world.clock.advance(0);
    assert.equal((await world.line()).status, status);
    const events = (await world.events()).slice(eventsBefore);
    const expected = ["session.disconnected", ...(status === "connected" ? ["session.connected"] : [])];
    assert.deepEqual(events.map(({ event }) => event), expected);
    const data = events[0]!.data as EventData<"session.disconnected">;
    assert.equal(data.status, status === "logged_out" ? "logged_out" : "disconnected");
    assert.match(data.reason, new RegExp(kind));
    assert.deepEqual(world.network.forgotten, forgets ? ["ses_1"] : []);

    await world.clock.advance(backWithinMs ?? 3_600_000);
    assert.equal((await world.line()).status, backWithinMs === null ? status : "connected");
    assert.equal((await world.line()).halted, backWithinMs === null);
    assert.equal((await world.line("ses_2")).status, "connected");
    assert.ok(events.every(({ sessionId }) => sessionId === "ses_1"));
    assert.equal(world.network.connections.filter(({ options }) => options.lineId === "ses_2").length, 1);
    await world.supervisor.stop();
  });
}

Deno.test("the log-out of a restricted line is reported as one, and the restriction ends with it", async () => {
  const world = await connectedWorld();
  world.network.of("ses_1").events.restricted({ kind: "DEFAULT", until: null });
  await world.clock.advance(0);
  world.network.of("ses_1").ends("logged_out");
  await world.clock.advance(0);
  const [disconnected] = await world.events("session.disconnected");
  assert.equal((disconnected?.data as EventData<"session.disconnected">).status, "logged_out");
  const restricted = (await world.events("session.restricted")) as { data: EventData<"session.restricted"> }[];
  assert.deepEqual(restricted.map(({ data }) => data.active), [true, false]);
  await world.supervisor.stop();
});

Deno.test("a network that is away is asked again at once, then with growing pauses of at most eight seconds", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  const opened: number[] = [];
  world.network.of("ses_1").ends("lost");
  for (let i = 0; i < 14; i++) {
    const before = world.network.connections.length;
    while (world.network.connections.length === before) await world.clock.advance(50);
    opened.push(world.clock.now());
    world.network.of("ses_1").ends("unavailable", 503);
  }
  const pauses = opened.slice(1).map((at, i) => at - opened[i]!);
  pauses.forEach((pause, i) => {
    const whole = Math.min(8_000, 1_000 * 2 ** i);
    assert.ok(pause >= whole / 2 - 50 && pause <= whole + 50, `pause ${i} of ${pause} ms`);
  });
  assert.equal((await world.events("session.disconnected")).length, 1);
  await world.supervisor.stop();
});

Deno.test("after a stable time the first pause is short again", async () => {
  const world = await connectedWorld();
  for (let i = 0; i < 6; i++) {
    await world.clock.advance(11_000);
    world.network.of("ses_1").ends("lost");
    await world.clock.advance(1_000);
    assert.equal((await world.line()).status, "connected");
  }
  await world.supervisor.stop();
});

Deno.test("a network that restarts the line over and over is not followed without a pause", async () => {
  const world = await connectedWorld();
  for (let i = 0; i < 10; i++) {
    world.network.of("ses_1").ends("restart", 515);
    await world.clock.advance(0);
  }
  assert.ok(world.network.connections.length <= 5, `${world.network.connections.length} connections at once`);
  await world.supervisor.stop();
});

Deno.test("a replaced line stays down over a restart of the gateway, until the owner reconnects it", async () => {
  const world = await connectedWorld();
  world.network.of("ses_1").ends("replaced", 440);
  await world.clock.advance(0);
  await world.supervisor.stop();
  await world.boot();
  await world.clock.advance(60_000);
  assert.equal((await world.line()).status, "disconnected");
  const asked = world.lines.want(ACCOUNT, "ses_1", "connected");
  await world.clock.advance(10);
  assert.equal((await asked).status, "connected");
  await world.supervisor.stop();
});

Deno.test("a paused line keeps its link over a restart of the gateway and needs no QR", async () => {
  const world = await connectedWorld();
  const paused = world.lines.want(ACCOUNT, "ses_1", "paused");
  await world.clock.advance(10);
  assert.equal((await paused).status, "disconnected");
  await world.supervisor.stop();
  await world.boot();
  await world.clock.advance(60_000);
  assert.equal((await world.line()).status, "disconnected");
  assert.equal(world.network.connections.length, 1);
  const asked = world.lines.want(ACCOUNT, "ses_1", "connected");
  await world.clock.advance(10);
  assert.equal((await asked).status, "connected");
  assert.deepEqual(world.network.forgotten, []);
  await world.supervisor.stop();
});

Deno.test("`reconnect` replaces a live connection, and makes a QR for a line that is logged out", async () => {
  const world = await connectedWorld();
  const again = world.lines.want(ACCOUNT, "ses_1", "connected");
  await world.clock.advance(10);
  assert.equal((await again).status, "connected");
  assert.equal(world.network.connections.length, 2);
  assert.ok(world.network.connections[0]!.isClosed);

  const out = world.lines.want(ACCOUNT, "ses_1", "logged_out");
  await world.clock.advance(10);
  assert.deepEqual([(await out).status, (await out).linked], ["logged_out", false]);
  assert.ok(world.network.connections[1]!.loggedOut);
  assert.deepEqual(world.network.forgotten, ["ses_1"]);

  const relinked = world.lines.want(ACCOUNT, "ses_1", "connected");
  await world.clock.advance(10);
  await shows(world, "ref");
  assert.equal((await relinked).status, "qr");
  await world.supervisor.stop();
});

Deno.test("what waits on a line fails when the line is logged out, and a new link starts with an empty queue", async () => {
  const world = await connectedWorld({ delays: { minMs: 60_000, maxMs: 60_000 } });
  const sent = await world.accept();
  await world.clock.advance(0);
  const waiting = [];
  for (let i = 0; i < 120; i++) waiting.push(await world.accept());
  world.network.of("ses_1").ends("logged_out", 401);
  await world.clock.advance(100);
  assert.equal((await world.message(sent.id)).status, "sent");
  for (const { id } of waiting) assert.equal((await world.message(id)).error?.code, "session_logged_out");
  assert.equal((await world.events("message.failed")).length, 120);
  assert.equal(await world.queueLength(), 0);
  await world.supervisor.stop();
});

Deno.test("a new link that is asked for at once finds nothing of a long queue", async () => {
  const world = await connectedWorld();
  world.network.of("ses_1").isOpen = false;
  const queued = [];
  for (let i = 0; i < 300; i++) queued.push(await world.accept());
  const asked = world.lines.want(ACCOUNT, "ses_1", "logged_out")
    .then(() => world.lines.want(ACCOUNT, "ses_1", "connected"));
  await world.clock.advance(30_000);
  await asked;
  const ends = await Promise.all(queued.map(async ({ id }) => (await world.message(id)).error?.code));
  assert.deepEqual([...new Set(ends)], ["session_logged_out"]);
  assert.notEqual((await world.line()).status, "logged_out");
  await world.supervisor.stop();
});

Deno.test("a line that was logged out while the gateway died fails its queue at the next boot", async () => {
  const world = new World();
  await world.addLine("ses_1", { linked: false, status: "logged_out", halted: true });
  const { id } = await world.accept();
  await world.boot();
  await world.clock.advance(100);
  assert.equal((await world.message(id)).error?.code, "session_logged_out");
  await world.supervisor.stop();
});

Deno.test("a deletion fails the whole queue, also if messages at its head are cancelled at the same moment", async () => {
  const world = await connectedWorld();
  await world.lines.pauseQueue(ACCOUNT, "ses_1", true);
  const queued = [];
  for (let i = 0; i < 60; i++) queued.push(await world.accept());
  const { getMany } = world.kv;
  const { kv, runtime } = world;
  const recorder = new Recorder({
    kv,
    chats: chatsOn(kv),
    runtime,
    events: testEvents(kv, runtime),
    sessionName: () => Promise.resolve(""),
    files: { remove: () => Promise.resolve() },
  });
  let head: string[] = [];
  world.kv.getMany = async <T>(keys: readonly Key[]) => {
    const slots = await getMany<T>(keys);
    if (keys[0]?.[0] !== "message" || keys.length < 2 || head.length > 0) return slots;
    head = keys.map(([, id]) => String(id));
    // As a cancelled bulk does: the line is only woken when all of its messages are cancelled.
    await recorder.cancel(head);
    return slots;
  };
  const asked = world.lines.want(ACCOUNT, "ses_1", "deleted");
  await world.clock.advance(100);
  world.supervisor.taken();
  await world.clock.advance(10_000);
  await asked;
  for (const { id } of queued) {
    const code = head.includes(id) ? "cancelled" : "session_deleted";
    assert.equal((await world.message(id)).error?.code, code);
  }
  assert.ok(head.length < queued.length);
  await world.supervisor.stop();
});

Deno.test("a deleted line is unlinked, its queue fails, its rows are gone, and the next boot knows nothing of it", async () => {
  const world = await connectedWorld({ delays: { minMs: 60_000, maxMs: 60_000 } });
  await world.accept();
  await world.clock.advance(0);
  const { id } = await world.accept();
  const { lastUsed } = await world.lines.get(ACCOUNT, "ses_1");
  const asked = world.lines.want(ACCOUNT, "ses_1", "deleted");
  await world.clock.advance(10);
  const deleted = await asked;
  assert.deepEqual([deleted.id, deleted.status, deleted.lastUsed], ["ses_1", "logged_out", lastUsed]);
  assert.ok(world.network.connections[0]!.loggedOut);
  assert.deepEqual(world.network.forgotten, ["ses_1"]);
  assert.equal((await world.message(id)).error?.code, "session_deleted");
  assert.deepEqual(await world.lines.list(ACCOUNT), []);
  await assert.rejects(() => world.lines.get(ACCOUNT, "ses_1"), { code: "not_found" });
  const left = [...world.disk.rows.values()].filter(({ key }) =>
    ["line", "pacing", "line_used", "queue", "seen", "message_of_network_id"].includes(key[0] as string)
  );
  assert.deepEqual(left, []);
  const [failed] = await world.events("message.failed");
  assert.equal(failed!.sessionName, "line ses_1");
  const [disconnected] = await world.events("session.disconnected");
  assert.deepEqual(disconnected!.data, { status: "logged_out", reason: "The owner deleted it." });
  await world.supervisor.stop();
});

Deno.test("a paused line comes up once more to be unlinked when it is deleted", async () => {
  const world = await connectedWorld();
  void world.lines.want(ACCOUNT, "ses_1", "paused");
  await world.clock.advance(10);
  void world.lines.want(ACCOUNT, "ses_1", "deleted");
  await world.clock.advance(10);
  assert.equal(world.network.connections.length, 2);
  assert.ok(world.network.connections[1]!.loggedOut);
  await assert.rejects(() => world.line());
  await world.supervisor.stop();
});

Deno.test("a stop while a line comes up to be unlinked closes its connection, and the next start goes on", async () => {
  const world = new World();
  await world.addLine("ses_1", { wanted: "deleted", generation: 2, observedGeneration: 1 });
  world.network.opensByItself = false;
  await world.boot();
  await world.clock.advance(10);
  const connection = world.network.of("ses_1");
  const stopping = world.supervisor.stop();
  await world.clock.advance(5_000);
  await stopping;
  assert.equal(connection.isClosed, true);
  assert.deepEqual(world.network.forgotten, []);

  world.network.opensByItself = true;
  await world.boot();
  await world.clock.advance(10);
  assert.equal(world.network.of("ses_1").loggedOut, true);
  assert.deepEqual(world.network.forgotten, ["ses_1"]);
  await world.supervisor.stop();
});

Deno.test("a line is deleted although the network cannot be told", async () => {
  const world = await connectedWorld();
  world.network.opensByItself = false;
  world.network.of("ses_1").ends("lost");
  await world.clock.advance(0);
  void world.lines.want(ACCOUNT, "ses_1", "deleted");
  await world.clock.advance(30_000);
  await assert.rejects(() => world.line());
  assert.deepEqual(world.network.forgotten, ["ses_1"]);
  await world.supervisor.stop();
});

Deno.test("a delete that the process did not live to finish is finished by the next", async () => {
  for (let commits = 0; commits < 6; commits++) {
    const world = await connectedWorld();
    await world.accept();
    await world.clock.advance(0);
    world.kv.commitsLeft = commits;
    void world.lines.want(ACCOUNT, "ses_1", "deleted").catch(() => {});
    await world.clock.advance(1_000);
    const asked = (await world.line().catch(() => null))?.wanted !== "connected";
    world.crash();
    await world.boot();
    await world.clock.advance(60_000);
    if (asked) await assert.rejects(() => world.line(), `after ${commits} commits`);
    else assert.equal((await world.line()).status, "connected");
    await world.supervisor.stop();
  }
});

Deno.test("after a boot no line claims a connection that it does not have", async () => {
  const world = await connectedWorld();
  world.crash();
  world.network.opensByItself = false;
  await world.boot();
  await world.clock.advance(10);
  assert.equal((await world.line()).status, "initializing");
  world.network.of("ses_1").ends("lost");
  await world.clock.advance(10);
  assert.equal((await world.line()).status, "disconnected");
  await world.supervisor.stop();
});

Deno.test("credentials decide at boot: a link that the row missed is used, one that is gone is a log-out", async () => {
  const world = new World();
  await world.addLine("ses_1", { linked: false, status: "qr", qr: "old" });
  await world.addLine("ses_2", { status: "connected", restriction: { kind: "DEFAULT", until: null } });
  world.network.linked.add("ses_1");
  world.network.linked.delete("ses_2");
  await world.boot();
  await world.clock.advance(100);
  assert.equal((await world.line("ses_1")).status, "connected");
  const { status, linked, restriction } = await world.line("ses_2");
  assert.deepEqual([status, linked, restriction], ["logged_out", false, null]);
  await world.supervisor.stop();
});

Deno.test("an adapter that throws troubles its own line alone, and is tried again", async () => {
  const world = new World();
  await world.addLine("ses_1");
  await world.boot();
  await world.clock.advance(100);
  world.network.broken = new Error("broken");
  await world.addLine("ses_2");
  await world.clock.advance(5_000);
  assert.equal((await world.line("ses_1")).status, "connected");
  assert.notEqual((await world.line("ses_2")).status, "connected");
  world.network.broken = null;
  await world.clock.advance(60_000);
  assert.equal((await world.line("ses_2")).status, "connected");
  await world.supervisor.stop();
});

Deno.test("a log-out that cuts an attempt short is a log-out, not a silence", async () => {
  // The attempt learns of the end first, the line ever so little later.
  for (let later = 0; later < 30; later++) {
    const world = await connectedWorld();
    world.network.outcome = () => null;
    await world.accept();
    await world.clock.advance(0);
    const connection = world.network.of("ses_1");
    connection.answers({ kind: "unknown", detail: "the connection ended" });
    for (let i = 0; i < later; i++) await Promise.resolve();
    const reported = !connection.isClosed; // else the line was faster and has closed it
    connection.ends("logged_out", 401);
    world.network.outcome = () => ({ kind: "sent", chat: "x" });
    await world.clock.advance(5_000);
    assert.equal((await world.line()).status, reported ? "logged_out" : "connected", `${later} moments later`);
    await world.supervisor.stop();
  }
});

Deno.test("what happens while the store is in trouble is written when it is over", async () => {
  const world = await connectedWorld();
  world.kv.trouble = new StoreError("locked", "another process");
  world.network.of("ses_1").ends("replaced", 440);
  await world.clock.advance(10_000);
  assert.equal((await world.line()).status, "connected");
  world.kv.trouble = null;
  await world.clock.advance(2_000);
  assert.equal((await world.line()).status, "disconnected");
  assert.equal((await world.events("session.disconnected")).length, 1);
  await world.supervisor.stop();
});

Deno.test("a connection that ends while it is written that it opened is not used", async () => {
  const world = new World();
  world.network.opensByItself = false;
  await world.addLine();
  await world.boot();
  await world.clock.advance(50);
  const connection = world.network.of("ses_1");
  const { commit } = world.kv;
  const go = Promise.withResolvers<void>();
  world.kv.commit = async (change) => {
    await go.promise;
    return await commit.call(world.kv, change);
  };
  connection.opens();
  await settle();
  connection.ends("replaced", 440);
  go.resolve();
  await settle();
  let asked = 0;
  connection.prepare = () => {
    asked++;
    return Promise.resolve({ kind: "hold", detail: "not connected" });
  };
  const message = await world.accept();
  await world.clock.advance(10_000);
  assert.deepEqual([asked, (await world.message(message.id)).status], [0, "queued"]);
  assert.deepEqual([(await world.line()).status, (await world.line()).halted], ["disconnected", true]);
  await world.supervisor.stop();
});

Deno.test("events of a connection that was replaced by a new one are not heard", async () => {
  const world = await connectedWorld();
  const old = world.network.of("ses_1");
  void world.lines.want(ACCOUNT, "ses_1", "connected");
  await world.clock.advance(10);
  old.events.closed({ kind: "logged_out", code: 401, detail: "late" });
  old.events.qr("late");
  await world.clock.advance(1_000);
  assert.equal((await world.line()).status, "connected");
  assert.deepEqual(world.network.forgotten, []);
  await world.supervisor.stop();
});

Deno.test("of a connection that has ended nothing is kept", async () => {
  const world = await connectedWorld();
  world.network.of("ses_1").ends("restart", 515);
  await world.clock.advance(1_000);
  assert.equal((await world.line()).status, "connected");
  const [first, second] = world.network.connections.splice(0).map((connection) => new WeakRef(connection));
  assert.equal(await isHeld(first!), false);
  assert.equal(await isHeld(second!), true);
  await world.supervisor.stop();
});

Deno.test("no log line holds the text of a QR or a pairing code", async () => {
  const world = await newWorld();
  await shows(world, "SECRET-QR-TEXT");
  world.network.of("ses_1").ends("link_expired");
  await world.clock.advance(1_000);
  const logged = JSON.stringify(world.runtime.lines);
  assert.ok(logged.includes("ses_1"));
  assert.ok(!logged.includes("SECRET-QR-TEXT"));
  await world.supervisor.stop();
});
