import assert from "node:assert/strict";
import type { EventData } from "../../../src/event/event.ts";
import type { OutgoingContent } from "../../../src/message/content.ts";
import type { Message } from "../../../src/message/message.ts";
import { keepVote, makeTallyOf } from "../../../src/message/receipts.ts";
import { Change } from "../../../src/store/kv.ts";
import type { Receipt } from "../../../src/whatsapp/incoming.ts";
import { connectedWorld, type World } from "../../support/line_world.ts";
import { MemoryKv } from "../../support/memory_kv.ts";

async function hears(world: World, networkId: string, fields: Partial<Receipt> = {}): Promise<void> {
  const at = world.clock.now();
  const receipt: Receipt = { networkId, chat: "x", participant: null, status: "delivered", at, ...fields };
  await world.network.of("ses_1").events.receipt(receipt);
}

async function said(world: World): Promise<string[]> {
  const events = await world.events("message.status", "message.sent");
  return events.map(({ event, data }) => {
    if (event === "message.sent") return "sent";
    const { status, participant } = data as EventData<"message.status">;
    return participant ? `${status} ${participant}` : status;
  });
}

Deno.test("delivered and read are reported once each, with their times on the message", async () => {
  const world = await connectedWorld();
  const { id, networkId } = await world.accept();
  await world.clock.advance(1_000);
  const deliveredAt = world.clock.now();
  await hears(world, networkId);
  await hears(world, networkId);
  await world.clock.advance(1_000);
  await hears(world, networkId, { status: "read" });
  await hears(world, networkId, { status: "read" });
  assert.deepEqual(await said(world), ["sent", "delivered", "read"]);
  const message = await world.message(id);
  assert.deepEqual([message.deliveredAt, message.readAt], [deliveredAt, world.clock.now()]);
  assert.equal(message.status, "sent");
  const [status] = await world.events("message.status");
  assert.deepEqual(status!.data, {
    messageId: id,
    networkId,
    status: "delivered",
    participant: null,
    at: new Date(deliveredAt).toISOString(),
  });
  await world.supervisor.stop();
});

Deno.test("a receipt in whole seconds is not from before the message was sent", async () => {
  const world = await connectedWorld();
  const { id, networkId } = await world.accept();
  await world.clock.advance(1_000);
  const { sentAt } = await world.message(id);
  await hears(world, networkId, { at: sentAt! - 900 });
  assert.equal((await world.message(id)).deliveredAt, sentAt);
  const [status] = await world.events("message.status");
  assert.equal((status!.data as EventData<"message.status">).at, new Date(sentAt!).toISOString());
  await world.supervisor.stop();
});

Deno.test("in a group each participant is reported once, and the message has the time of the first", async () => {
  const world = await connectedWorld();
  const { id, networkId } = await world.accept("ses_1", { to: "1-2@g.us" });
  await world.clock.advance(1_000);
  const first = world.clock.now();
  await hears(world, networkId, { participant: "a@lid" });
  await world.clock.advance(1_000);
  await hears(world, networkId, { participant: "b@lid" });
  await hears(world, networkId, { participant: "a@lid" });
  await hears(world, networkId, { participant: "b@lid", status: "read" });
  assert.deepEqual(await said(world), ["sent", "delivered a@lid", "delivered b@lid", "read b@lid"]);
  assert.equal((await world.message(id)).deliveredAt, first);
  await world.supervisor.stop();
});

Deno.test("the receipts of a big group that come together are reported once each, by few commits", async () => {
  const world = await connectedWorld();
  const { id, networkId } = await world.accept("ses_1", { to: "1-2@g.us" });
  const other = await world.accept("ses_1", { to: "1-2@g.us" });
  await world.clock.advance(60_000);
  const commits = world.disk.commits;
  const people = Array.from({ length: 500 }, (_, i) => `${i}@lid`);
  await Promise.all(people.flatMap((participant) => [
    hears(world, networkId, { participant }),
    hears(world, networkId, { participant, status: "read" }),
    hears(world, networkId, { participant }),
    hears(world, other.networkId, { participant }),
  ]));
  const made = world.disk.commits - commits;
  assert(made < 20, `${made} commits`);
  const reported = await said(world);
  assert.equal(reported.filter((each) => each !== "sent").length, 1_500);
  for (const participant of people) {
    assert(reported.indexOf(`delivered ${participant}`) < reported.indexOf(`read ${participant}`));
    assert.equal(reported.filter((each) => each === `delivered ${participant}`).length, 2);
  }
  assert.equal((await world.message(id)).readAt, world.clock.now());
  assert.equal((await world.message(other.id)).readAt, null);
  await world.supervisor.stop();
});

Deno.test("delivered after read says nothing new", async () => {
  const world = await connectedWorld();
  const { networkId } = await world.accept();
  await world.clock.advance(0);
  await hears(world, networkId, { status: "read" });
  await hears(world, networkId);
  assert.deepEqual(await said(world), ["sent", "read"]);
  await world.supervisor.stop();
});

Deno.test("receipts that overtake the commit of `sent` are reported after it", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  const { id, networkId } = await world.accept();
  await world.clock.advance(0);
  await hears(world, networkId);
  await hears(world, networkId, { status: "read" });
  assert.deepEqual(await said(world), []);
  world.network.of("ses_1").answers({ kind: "sent", chat: "x" });
  await world.clock.advance(0);
  assert.deepEqual(await said(world), ["sent", "delivered", "read"]);
  assert.equal((await world.message(id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("a receipt proves a message whose ack was lost: it is sent, and does not go again", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => ({ kind: "unknown", detail: "no ack" });
  world.network.opensByItself = false;
  const { id, networkId } = await world.accept();
  await world.clock.advance(5_000);
  assert.equal((await world.message(id)).status, "queued");
  world.network.outcome = () => ({ kind: "sent", chat: "x" });
  const deliveredAt = world.clock.now();
  await hears(world, networkId);
  world.network.of("ses_1").opens();
  await world.clock.advance(5_000);
  assert.deepEqual(await said(world), ["sent", "delivered"]);
  assert.equal((await world.message(id)).sentAt, deliveredAt);
  assert.equal(world.network.departures.length, 1);
  await world.supervisor.stop();
});

Deno.test("a receipt of a crash's message is kept, and spares the repetition", async () => {
  const world = await connectedWorld();
  world.network.outcome = () => null;
  const { id, networkId } = await world.accept();
  await world.clock.advance(0);
  await hears(world, networkId);
  world.crash();
  await world.boot();
  await world.clock.advance(2_000);
  assert.equal((await world.message(id)).status, "sent");
  assert.equal(world.network.departures.length, 1);
  assert.deepEqual(await said(world), ["sent", "delivered"]);
  await world.supervisor.stop();
});

Deno.test("a receipt for a message that the owner sent from the phone changes nothing", async () => {
  const world = await connectedWorld();
  const commits = world.disk.commits;
  await hears(world, "FROM-THE-PHONE");
  assert.equal(world.disk.commits, commits);
  await world.supervisor.stop();
});

Deno.test("receipts and the answer that come in the same moment are all kept, whoever is faster", async () => {
  // The receipts come ever so little earlier or later than the answer, so that their commits meet in every way.
  for (let later = -40; later < 40; later++) {
    const world = await connectedWorld();
    world.network.outcome = () => null;
    const { id, networkId } = await world.accept();
    await world.clock.advance(0);
    const moments = async (count: number) => {
      for (let i = 0; i < count; i++) await Promise.resolve();
    };
    await Promise.all([
      moments(-later).then(() => world.network.of("ses_1").answers({ kind: "sent", chat: "x" })),
      moments(later).then(() => hears(world, networkId)),
      moments(later).then(() => hears(world, networkId)),
    ]);
    await world.clock.advance(0);
    const { status, deliveredAt } = await world.message(id);
    assert.deepEqual([status, deliveredAt], ["sent", world.clock.now()]);
    assert.deepEqual(await said(world), ["sent", "delivered"]);
    await world.supervisor.stop();
  }
});

const POLL: OutgoingContent = { kind: "poll", question: "?", options: ["tea", "coffee"], multiple: true };

function aMessage(content: OutgoingContent): Message {
  return { id: "msg_1", content } as Message;
}

Deno.test("each person's last choice counts, whether their number was known at first or not", async () => {
  const kv = new MemoryKv();
  const vote = async (number: string | null, jid: string, options: string[], messageId = "msg_1") => {
    const change = new Change();
    keepVote(change, { messageId, number, jid, options });
    await kv.commit(change);
  };
  await vote(null, "1@lid", ["tea"]);
  await vote("34600000001", "1@lid", ["coffee", "tea"]);
  await vote("34600000002", "2@lid", ["tea"]);
  await vote("34600000002", "2@lid", []);
  await vote(null, "3@lid", ["tea"]);
  await vote("34600000003", "34600000003", ["coffee"]);
  await vote("34600000004", "4@lid", ["tea"], "msg_2");
  assert.deepEqual(await makeTallyOf(kv)(aMessage(POLL)), {
    voters: 3,
    options: [{ name: "tea", votes: 2 }, { name: "coffee", votes: 2 }],
  });
});

Deno.test("what is no poll has no tally", async () => {
  assert.equal(await makeTallyOf(new MemoryKv())(aMessage({ kind: "text", text: "hi" })), null);
});
