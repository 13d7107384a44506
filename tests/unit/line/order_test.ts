/** In which order messages leave: priorities, replies, chats, what is scheduled, and that nothing waits for ever. */
import assert from "node:assert/strict";
import { positionAt } from "../../../src/message/queue/place.ts";
import type { Message, Priority } from "../../../src/message/message.ts";
import type { Incoming } from "../../../src/whatsapp/incoming.ts";
import { plainIncoming } from "../../support/incoming.ts";
import { LANES, messageKeys } from "../../../src/message/rows.ts";
import { connectedWorld, World } from "../../support/line_world.ts";

const PAUSE_MS = 10_000;
const PACED = { delays: { minMs: PAUSE_MS, maxMs: PAUSE_MS } };
const HOUR_MS = 3_600_000;

/** A world whose line has just sent one message, so that all others wait. */
async function waitingWorld(): Promise<World> {
  const world = await connectedWorld(PACED);
  await world.accept("ses_1", { to: "34600000099" });
  await world.clock.advance(0);
  return world;
}

/** The names of the messages in the order in which they left, after the first. */
function left(world: World, named: Record<string, Message>): (string | undefined)[] {
  const names = new Map(Object.entries(named).map(([name, { networkId }]) => [networkId, name]));
  return world.network.departures.slice(1).map(({ networkId }) => names.get(networkId));
}

/** The phone of the number writes to the line. */
function receives(world: World, from: Pick<Incoming, "chat" | "number">): Promise<boolean> {
  const timestamp = Math.floor(world.clock.now() / 1000);
  return world.network.of("ses_1").receive(
    plainIncoming({ ...from, networkId: world.runtime.ids.network(), timestamp }),
  );
}

const to = (n: number) => `346000001${String(n).padStart(2, "0")}`;

Deno.test("a higher priority leaves first; within one, what was accepted first", async () => {
  const world = await waitingWorld();
  const send = (n: number, priority: Priority) => world.accept("ses_1", { to: to(n), priority });
  const named = {
    low: await send(1, "low"),
    normal1: await send(2, "normal"),
    high1: await send(3, "high"),
    normal2: await send(4, "normal"),
    high2: await send(5, "high"),
  };
  await world.clock.advance(10 * PAUSE_MS);
  assert.deepEqual(left(world, named), ["high1", "high2", "normal1", "normal2", "low"]);
  await world.supervisor.stop();
});

Deno.test("a message to a chat that wrote within 24 hours passes before cold ones of its priority, and no others", async () => {
  const world = await waitingWorld();
  const send = (n: number, priority: Priority = "normal") => world.accept("ses_1", { to: to(n), priority });
  const named = { cold: await send(1), waiting: await send(2), high: await send(3, "high") };
  await receives(world, { chat: `${to(2)}@s.whatsapp.net`, number: to(2) });
  await receives(world, { chat: "77@lid", number: to(4) });
  Object.assign(named, { later: await send(4), lowReply: await send(2, "low") });
  await world.clock.advance(10 * PAUSE_MS);
  assert.deepEqual(left(world, named), ["high", "waiting", "later", "cold", "lowReply"]);
  await world.supervisor.stop();
});

Deno.test("a reply that waits alone stays where it was accepted, and is a reply once others wait beside it", async () => {
  const world = await waitingWorld();
  for (const n of [2, 4]) await receives(world, { chat: `${to(n)}@s.whatsapp.net`, number: to(n) });
  const reply = await world.accept("ses_1", { to: to(2) });
  await world.clock.advance(1);
  const lanes = async () => {
    const rows = await Array.fromAsync(world.kv.list({ prefix: messageKeys.queueOfLine("ses_1") }));
    return rows.map(({ key }) => LANES[Number(key[3])]);
  };
  assert.deepEqual(await lanes(), ["cold"]);
  const named = {
    reply,
    cold: await world.accept("ses_1", { to: to(1) }),
    later: await world.accept("ses_1", { to: to(4) }),
  };
  await world.clock.advance(1);
  assert.deepEqual(await lanes(), ["reply", "reply", "cold"]);
  await world.clock.advance(10 * PAUSE_MS);
  assert.deepEqual(left(world, named), ["reply", "later", "cold"]);
  await world.supervisor.stop();
});

Deno.test("what comes in while nothing waits reads no queue, and its chat's next message is a reply all the same", async () => {
  const world = await waitingWorld();
  await receives(world, { chat: `${to(4)}@s.whatsapp.net`, number: to(4) });
  await world.clock.advance(2 * PAUSE_MS);
  const list = world.kv.list.bind(world.kv);
  let looks = 0;
  world.kv.list = (range, options) => {
    if (String(range.prefix[0]).includes("queue")) looks++;
    return list(range, options);
  };
  await receives(world, { chat: `${to(2)}@s.whatsapp.net`, number: to(2) });
  await world.clock.advance(1);
  assert.equal(looks, 0);
  await world.accept("ses_1", { to: to(9) });
  await world.clock.advance(1);
  const named = { cold: await world.accept("ses_1", { to: to(1) }), reply: await world.accept("ses_1", { to: to(2) }) };
  await world.clock.advance(10 * PAUSE_MS);
  assert.deepEqual(left(world, named).slice(1), ["reply", "cold"]);
  await world.supervisor.stop();
});

Deno.test("what came in is still known after a restart, and 24 hours later it counts no more", async () => {
  const world = await waitingWorld();
  await receives(world, { chat: `${to(2)}@s.whatsapp.net`, number: to(2) });
  await world.clock.advance(1);
  await world.supervisor.stop();
  world.network.opensByItself = false;
  const named: Record<string, Message> = { cold: await world.accept("ses_1", { to: to(1) }) };
  named.reply = await world.accept("ses_1", { to: to(2) });
  world.network.opensByItself = true;
  await world.boot();
  await world.clock.advance(3 * PAUSE_MS);
  assert.deepEqual(left(world, named), ["reply", "cold"]);

  await world.clock.advance(24 * HOUR_MS);
  const first = await world.accept("ses_1", { to: to(9) });
  await world.clock.advance(0);
  Object.assign(named, { first, coldToo: await world.accept("ses_1", { to: to(1) }) });
  named.noReply = await world.accept("ses_1", { to: to(2) });
  await world.clock.advance(3 * PAUSE_MS);
  assert.deepEqual(left(world, named).slice(2), ["first", "coldToo", "noReply"]);
  await world.supervisor.stop();
});

Deno.test("the order within a chat is never changed: what stands in the way of an urgent message leaves with it", async () => {
  const world = await waitingWorld();
  const send = (n: number, priority: Priority, form = "") => world.accept("ses_1", { to: to(n) + form, priority });
  const named = {
    other: await send(1, "normal"),
    first: await send(2, "low"),
    second: await send(2, "normal", "@s.whatsapp.net"),
    urgent: await send(2, "high"),
  };
  await world.clock.advance(10 * PAUSE_MS);
  assert.deepEqual(left(world, named), ["first", "second", "urgent", "other"]);
  assert.equal(await world.queueLength(), 0);
  await world.supervisor.stop();
});

Deno.test("a message that may have left goes again before what is more urgent", async () => {
  const world = await waitingWorld();
  world.network.outcome = () => ({ kind: "retry", detail: "busy" });
  const named: Record<string, Message> = { tried: await world.accept("ses_1", { to: to(1), priority: "low" }) };
  await world.clock.advance(PAUSE_MS);
  world.network.outcome = ({ to }) => ({ kind: "sent", chat: to });
  named.urgent = await world.accept("ses_1", { to: to(2), priority: "high" });
  await world.clock.advance(5 * PAUSE_MS);
  assert.deepEqual(left(world, named), ["tried", "tried", "urgent"]);
  await world.supervisor.stop();
});

Deno.test("a low priority does not wait for ever behind urgent ones that never end", async () => {
  const world = await waitingWorld();
  const low = await world.accept("ses_1", { to: to(1), priority: "low" });
  for (let sent = 0; sent < 100; sent++) {
    await world.accept("ses_1", { to: to(2), priority: "high" });
    await world.accept("ses_1", { to: to(3), priority: "normal" });
    await world.clock.advance(PAUSE_MS);
  }
  const { status, sentAt } = await world.message(low.id);
  assert.equal(status, "sent");
  const waited = sentAt! - low.createdAt;
  assert(waited >= 600_000 && waited <= 600_000 + 10 * PAUSE_MS, `it left after ${waited} ms`);
  await world.supervisor.stop();
});

Deno.test("attempts that are repeated at the turn of the oldest do not take it from it", async () => {
  const world = await waitingWorld();
  const { departures } = world.network;
  world.network.outcome = ({ to }) =>
    departures.length % 10 === 9 ? { kind: "retry", detail: "busy" } : { kind: "sent", chat: to };
  const low = await world.accept("ses_1", { to: to(1), priority: "low" });
  for (let sent = 0; sent < 100; sent++) {
    await world.accept("ses_1", { to: to(2), priority: "high" });
    await world.clock.advance(PAUSE_MS);
  }
  assert.equal((await world.message(low.id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("a scheduled message holds up nothing, leaves when it is due, and lets what waited longer pass", async () => {
  const world = await connectedWorld(PACED);
  const due = world.clock.now() + HOUR_MS;
  const scheduled = await world.accept("ses_1", { to: to(1), sendAt: due });
  const now = await world.accept("ses_1", { to: to(2) });
  await world.clock.advance(HOUR_MS - 1);
  assert.deepEqual(world.network.departures.map((d) => d.networkId), [now.networkId]);
  assert.equal((await world.message(scheduled.id)).status, "queued");
  await world.clock.advance(1);
  assert.equal((await world.message(scheduled.id)).sentAt, due, "the bell rings at that time");

  const later = await world.accept("ses_1", { to: to(1), sendAt: due + 2 * PAUSE_MS + 1 });
  const waits = [];
  for (let i = 0; i < 4; i++) waits.push(await world.accept("ses_1", { to: to(i + 2) }));
  await world.clock.advance(10 * PAUSE_MS);
  assert.deepEqual(world.network.departures.slice(2).map((d) => d.networkId), [
    ...waits.map(({ networkId }) => networkId),
    later.networkId,
  ]);
  assert.equal(await world.queueLength(), 0);
  await world.supervisor.stop();
});

Deno.test("a scheduled message leaves after a restart that slept through its time", async () => {
  const world = await connectedWorld();
  const { id, position } = await world.accept("ses_1", { sendAt: world.clock.now() + HOUR_MS });
  assert(position >= positionAt(world.clock.now() + HOUR_MS));
  world.crash();
  await world.clock.advance(2 * HOUR_MS);
  assert.equal((await world.message(id)).status, "queued");
  await world.boot();
  await world.clock.advance(100);
  assert.equal((await world.message(id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("a message that is accepted while very many come due passes none to its chat", async () => {
  const world = await connectedWorld();
  const sendAt = world.clock.now() + HOUR_MS;
  for (let i = 0; i < 499; i++) await world.accept("ses_1", { to: to(1), sendAt });
  const due = await world.accept("ses_1", { to: to(2), sendAt });
  let urgent: Promise<Message> | null = null;
  world.network.outcome = ({ to: chat }) => {
    urgent ??= world.accept("ses_1", { to: to(2), priority: "high" });
    return { kind: "sent", chat };
  };
  await world.clock.advance(HOUR_MS + 1_000);
  const named = { due, urgent: await urgent! };
  assert.deepEqual(left(world, named).filter(Boolean), ["due", "urgent"]);
  assert.equal(await world.queueLength(), 0);
  await world.supervisor.stop();
});

Deno.test("a system clock that is set forward while a message is scheduled counts within ten seconds", async () => {
  const world = await connectedWorld();
  const { now } = world.clock;
  let aheadMs = 0;
  world.clock.now = () => now.call(world.clock) + aheadMs;
  const soon = await world.accept("ses_1", { sendAt: world.clock.now() + HOUR_MS });
  const later = await world.accept("ses_1", { to: "34600000002", sendAt: world.clock.now() + 2 * HOUR_MS });
  aheadMs = HOUR_MS;
  await world.clock.advance(10_000);
  assert.deepEqual(
    [(await world.message(soon.id)).status, (await world.message(later.id)).status],
    ["sent", "queued"],
  );
  await world.clock.advance(HOUR_MS);
  assert.equal((await world.message(later.id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("a log-out fails what is scheduled too", async () => {
  const world = await connectedWorld();
  const { id } = await world.accept("ses_1", { sendAt: world.clock.now() + HOUR_MS });
  const gone = world.lines.want("acc_1", "ses_1", "logged_out");
  await world.clock.advance(10_000);
  await gone;
  assert.equal((await world.message(id)).error?.code, "session_logged_out");
  await world.supervisor.stop();
});

Deno.test("wherever the process dies, each message leaves once and the order of its chat is kept", async () => {
  let deaths = 0;
  for (let after = 1, died = true; died && after < 120; after++) {
    const world = new World({ seed: after });
    await world.addLine();
    world.network.opensByItself = false;
    await world.boot();
    const expected: Record<string, string[]> = {};
    const send = async (n: number, fields: Partial<Message> = {}) => {
      const { networkId } = await world.accept("ses_1", { to: to(n), ...fields });
      (expected[to(n)] ??= []).push(networkId);
    };
    await send(1, { priority: "low" });
    await send(2);
    await send(1, { priority: "high" });
    await send(3);
    await send(2, { sendAt: world.clock.now() + 50 });
    world.kv.commitsLeft = after;
    world.network.of("ses_1").opens();
    receives(world, { chat: `${to(3)}@s.whatsapp.net`, number: to(3) }).catch(() => {});
    await world.clock.advance(5_000);
    died = world.kv.commitsLeft <= 0;
    if (died) deaths++;
    world.crash();
    world.network.opensByItself = true;
    await world.boot();
    await world.clock.advance(60_000);
    for (const [number, networkIds] of Object.entries(expected)) {
      const seen = world.network.departures.filter((departure) => departure.to === number).map((d) => d.networkId);
      assert.deepEqual([...new Set(seen)], networkIds, `killed after ${after} commits`);
    }
    assert.equal(await world.queueLength(), 0);
    await world.supervisor.stop();
  }
  assert(deaths > 10, `only ${deaths} deaths`);
});
