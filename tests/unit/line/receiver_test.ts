import assert from "node:assert/strict";
import { makeSweepSeen, MAX_MESSAGE_AGE_MS } from "../../../src/line/seen.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import type { EventName } from "../../../src/event/event.ts";
import type { Message } from "../../../src/message/message.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { mediaKeys } from "../../../src/media/rows.ts";
import { Change, StoreError } from "../../../src/store/kv.ts";
import type { Incoming, Recalled } from "../../../src/whatsapp/incoming.ts";
import { plainIncoming } from "../../support/incoming.ts";
import { connectedWorld, World } from "../../support/line_world.ts";
import { settle } from "../../support/runtime.ts";

let made = 0;

function incoming(world: World, fields: Partial<Incoming> = {}): Incoming {
  return plainIncoming({
    networkId: `IN${++made}`,
    chat: "34600000009@s.whatsapp.net",
    number: "34600000009",
    pushName: "Ana",
    timestamp: Math.floor(world.clock.now() / 1000),
    ...fields,
  });
}

const MEDIA = {
  mimetype: "image/png",
  filename: null,
  size: 3,
  download: () => Promise.reject(new Error("the ingest is replaced in these tests")),
};

/** A world whose media ingest waits until the test lets each file through. */
async function worldWithSlowMedia() {
  const world = new World();
  const waiting: { networkId: string; release: () => void; signal: AbortSignal }[] = [];
  world.media = {
    take: (accountId, { networkId }, signal) =>
      new Promise((resolve) => {
        const file = {
          id: `med_${networkId}`,
          accountId,
          size: 3,
          sha256: "00",
          mimetype: "image/png",
          filename: "a.png",
          createdAt: 0,
          expiresAt: 1,
        };
        const media = { url: `http://x/media/${networkId}`, mimetype: "image/png", size: 3, filename: "a.png" };
        waiting.push({ networkId, signal, release: () => resolve({ media, file }) });
      }),
  };
  await world.addLine();
  await world.boot();
  await world.clock.advance(100);
  return { world, waiting };
}

async function received(world: World): Promise<string[]> {
  return (await world.events("message.received")).map(({ data }) => (data as { messageId: string }).messageId);
}

Deno.test("an incoming message becomes one event, as the specification has it", async () => {
  const world = await connectedWorld();
  const message = incoming(world);
  await world.network.of("ses_1").receive(message);
  const [event] = await world.events("message.received");
  assert.deepEqual(event!.data, {
    from: "34600000009@s.whatsapp.net",
    number: "34600000009",
    pushName: "Ana",
    messageId: message.networkId,
    timestamp: message.timestamp,
    type: "conversation",
    text: "hola",
    chat: "34600000009@s.whatsapp.net",
    isForwarded: false,
  });
  assert.deepEqual([event!.sessionId, event!.sessionName], ["ses_1", "line ses_1"]);
  await world.supervisor.stop();
});

const CHANGES: [change: Incoming["change"], event: EventName, data: Record<string, unknown>][] = [
  [{ kind: "edited", target: "3A", text: "better" }, "message.edited", { messageId: "3A", text: "better" }],
  [{ kind: "deleted", target: "3A", byAdmin: false }, "message.deleted", { messageId: "3A" }],
  [{ kind: "vote", target: "3A", options: ["tea"] }, "poll.vote", {
    messageId: null,
    networkId: "3A",
    options: ["tea"],
  }],
  [{ kind: "vote", target: "3EB0", options: [] }, "poll.vote", {
    messageId: "msg_7",
    networkId: "3EB0",
    options: [],
  }],
];

for (const [change, event, data] of CHANGES) {
  for (const fromMe of [false, true]) {
    Deno.test(`${JSON.stringify(change)}${fromMe ? " of the owner" : ""} is ${event}, once, and no message`, async () => {
      const world = await connectedWorld();
      await world.kv.commit(new Change().set(messageKeys.messageOfNetworkId("ses_1", "3EB0"), "msg_7"));
      const message = incoming(world, { change, fromMe });
      for (let twice = 0; twice < 2; twice++) await world.network.of("ses_1").receive(message);
      const about = { chat: message.chat, number: message.number };
      assert.deepEqual((await world.events(event)).map(({ data }) => data), [{ ...data, ...about }]);
      for (const name of ["message.received", "message.echo"] as const) assert.deepEqual(await world.events(name), []);
      await world.supervisor.stop();
    });
  }
}

Deno.test("what the owner changes on the phone of a message that the API sent stands in its record", async () => {
  const world = await connectedWorld();
  const { id, networkId: target } = await world.accept("ses_1", { content: { kind: "text", text: "at six" } });
  await world.clock.advance(1_000);
  const happens = (change: Incoming["change"], of: Partial<Incoming> = {}) =>
    world.network.of("ses_1").receive(incoming(world, { fromMe: true, networkId: `3E${++happened}`, ...of, change }));
  let happened = 0;
  await happens({ kind: "edited", target, text: "at seven" });
  const edited = await world.message(id);
  assert.deepEqual([edited.content, edited.editedAt], [{ kind: "text", text: "at seven" }, world.clock.now()]);
  await happens({ kind: "edited", target, text: "at eight" }, { fromMe: false });
  await happens({ kind: "deleted", target, byAdmin: false }, { fromMe: false });
  assert.deepEqual(await world.message(id), edited, "nobody else may");
  await happens({ kind: "deleted", target, byAdmin: false });
  assert.equal((await world.message(id)).revokedAt, world.clock.now());
  await world.supervisor.stop();
});

const GROUP = "1-2@g.us";
const EDIT = { kind: "edited", target: "3A", text: "send the money elsewhere" } as const;
const DELETION = { kind: "deleted", target: "3A", byAdmin: false } as const;
const BY_ANA = { chat: GROUP, participant: "3@lid", fromMe: false, number: "34600000009" };
const BY_ANA_ALONE = { ...BY_ANA, chat: "3@lid", participant: null };
const BY_OWNER = { ...BY_ANA, participant: null, fromMe: true };
const STRANGER = { chat: GROUP, participant: "4@lid", number: "34600000004" };

type Told = Pick<Recalled, "chat" | "participant" | "fromMe" | "number">;
const MAY: [title: string, original: Told | "ours" | "seen", by: Partial<Incoming>, may: boolean][] = [
  ["its author", BY_ANA, { chat: GROUP, participant: "3@lid", number: null }, true],
  ["its author, by another address", BY_ANA, { chat: GROUP, participant: "49@s.whatsapp.net" }, true],
  ["its author in a chat of two", BY_ANA_ALONE, { chat: "3@lid", number: null }, true],
  ["another member of the group", BY_ANA, STRANGER, false],
  ["a member whose number is not known", BY_ANA, { ...STRANGER, number: null }, false],
  ["a member, of the owner's message", BY_OWNER, STRANGER, false],
  ["a member, of a message that the API sent", "ours", STRANGER, false],
  ["a member, of a message that could not be kept", "seen", STRANGER, false],
  ["somebody in a chat of their own", BY_ANA, { chat: "4@lid", number: "34600000004" }, false],
  ["the line's owner", BY_ANA, { ...STRANGER, fromMe: true }, true],
];

for (const [title, original, by, may] of MAY) {
  Deno.test(`${title} ${may ? "changes" : "does not change"} it`, async () => {
    const world = await connectedWorld();
    const { kv, network } = world;
    if (original === "ours") await kv.commit(new Change().set(messageKeys.messageOfNetworkId("ses_1", "3A"), "msg_7"));
    else if (original === "seen") {
      await kv.commit(new Change().set(lineKeys.seen("ses_1", GROUP, "3A"), { at: 1, from: "3@lid" }));
    } else network.recalled.set("ses_1 3A", { ...original, kind: "text", text: "hola", caption: null, filename: null });
    for (const change of [EDIT, DELETION]) await network.of("ses_1").receive(incoming(world, { ...by, change }));
    assert.equal((await world.events("message.edited")).length, may ? 1 : 0);
    assert.equal((await world.events("message.deleted")).length, may ? 1 : 0);
    const chat = typeof original === "string" ? GROUP : original.chat;
    await network.of("ses_1").receive(incoming(world, { ...by, chat, change: { ...DELETION, byAdmin: true } }));
    assert.equal((await world.events("message.deleted")).length, may ? 2 : 1, "an admin deletes");
    await world.supervisor.stop();
  });
}

Deno.test("who wrote another message of the same id in another chat does not change it", async () => {
  const world = await connectedWorld();
  await world.kv.commit(new Change().set(lineKeys.seen("ses_1", GROUP, "3A"), { at: 1, from: "3@lid" }));
  const own = { chat: "4@lid", participant: null, fromMe: false, number: STRANGER.number };
  world.network.recalled.set("ses_1 3A", { ...own, kind: "text", text: "hola", caption: null, filename: null });
  for (const change of [EDIT, DELETION]) {
    await world.network.of("ses_1").receive(incoming(world, { ...STRANGER, change }));
  }
  for (const event of ["message.edited", "message.deleted"] as const) {
    assert.deepEqual(await world.events(event), []);
  }
  await world.supervisor.stop();
});

for (const [whose, original] of [["a member's", BY_ANA], ["the owner's", BY_OWNER], ["our", "ours"]] as const) {
  Deno.test(`an admin of another group does not delete ${whose} message`, async () => {
    const world = await connectedWorld();
    const { kv, network } = world;
    if (original === "ours") {
      const ours = messageKeys.messageOfNetworkId("ses_1", "3A");
      await kv.commit(new Change().set(ours, "msg_7").set(messageKeys.message("msg_7"), { to: GROUP } as Message));
    } else network.recalled.set("ses_1 3A", { ...original, kind: "text", text: "hola", caption: null, filename: null });
    const change = { ...DELETION, byAdmin: true };
    await network.of("ses_1").receive(incoming(world, { ...STRANGER, chat: "9-9@g.us", change }));
    assert.deepEqual(await world.events("message.deleted"), []);
    await world.supervisor.stop();
  });
}

Deno.test("what goes beyond the specification is there only when there is something to say", async () => {
  const world = await connectedWorld();
  await world.network.of("ses_1").receive(
    incoming(world, {
      chat: "1-2@g.us",
      participant: "3@lid",
      type: "unknown",
      text: null,
      details: { kind: "pinInChatMessage" },
      quoted: { messageId: "Q", fromMe: true, participant: null, text: "Coffee?" },
      mentions: ["4@lid"],
      isForwarded: true,
      viewOnce: true,
      ad: { sourceId: "7" },
      undecryptable: true,
    }),
  );
  const [event] = await world.events("message.received");
  const { from: _, number: __, pushName: ___, messageId: ____, timestamp: _____, type, text, ...beyond } = event!
    .data as unknown as Record<string, unknown>;
  assert.deepEqual([type, text], ["unknown", null]);
  assert.deepEqual(beyond, {
    chat: "1-2@g.us",
    participant: "3@lid",
    quoted: { messageId: "Q", fromMe: true, participant: null, text: "Coffee?" },
    mentions: ["4@lid"],
    isForwarded: true,
    viewOnce: true,
    ad: { sourceId: "7" },
    details: { kind: "pinInChatMessage", undecryptable: true },
  });
  await world.supervisor.stop();
});

Deno.test("what the owner writes on the phone is an echo and not received", async () => {
  const world = await connectedWorld();
  const message = incoming(world, { fromMe: true, number: "34600000001" });
  await world.network.of("ses_1").receive(message);
  assert.deepEqual(await received(world), []);
  const [event] = await world.events("message.echo");
  assert.deepEqual(event!.data, {
    from: "34600000009@s.whatsapp.net",
    number: "34600000001",
    pushName: "Ana",
    messageId: message.networkId,
    timestamp: message.timestamp,
    type: "conversation",
    text: "hola",
    chat: "34600000009@s.whatsapp.net",
    isForwarded: false,
    fromMe: true,
  });
  await world.supervisor.stop();
});

Deno.test("a message is settled in the commit of its event; one that is known is not", async () => {
  const world = await connectedWorld();
  const message = incoming(world);
  const { events } = world.network.of("ses_1");
  const row = lineKeys.seen("ses_1", "settled", message.networkId);
  let commit = new Change();
  assert.equal(
    await events.message(message, (change) => {
      commit = change.set(row, world.clock.now());
    }),
    true,
  );
  const seen = lineKeys.seen("ses_1", message.chat, message.networkId).join();
  assert.ok(commit.mutations.some(({ key }) => key.join() === seen), "the message is kept by the same commit");
  assert.notEqual((await world.kv.get(row)).value, null);
  assert.equal(await events.message(message, () => assert.fail("nothing is committed")), false);
  await world.supervisor.stop();
});

Deno.test("the same message is one event, however often and however soon it comes again", async () => {
  const world = await connectedWorld();
  const message = incoming(world);
  const line = world.network.of("ses_1");
  await Promise.all([line.receive(message), line.receive(message)]);
  await line.receive(message);
  world.crash();
  await world.boot();
  await world.clock.advance(100);
  await world.network.of("ses_1").receive(message);
  assert.deepEqual(await received(world), [message.networkId]);
  // The same id in another chat is another message.
  await world.network.of("ses_1").receive({ ...message, chat: "1-2@g.us" });
  assert.equal((await received(world)).length, 2);
  await world.supervisor.stop();
});

Deno.test("a message that was reported as unreadable is emitted once it can be read, and each of the two only once", async () => {
  const world = await connectedWorld();
  const line = world.network.of("ses_1");
  const readable = incoming(world);
  const report = { ...readable, type: "unknown" as const, text: null, undecryptable: true };
  for (const message of [report, report, readable, readable, report]) await line.receive(message);
  world.crash();
  await world.boot();
  await world.clock.advance(100);
  for (const message of [report, readable]) await world.network.of("ses_1").receive(message);
  const emitted = (await world.events("message.received")).map(({ data }) =>
    data as unknown as Record<string, unknown>
  );
  assert.deepEqual(emitted.map(({ messageId, text, details }) => ({ messageId, text, details })), [
    { messageId: readable.networkId, text: null, details: { undecryptable: true } },
    { messageId: readable.networkId, text: "hola", details: undefined },
  ]);
  await world.supervisor.stop();
});

Deno.test("a group's member can't take the place of another's unreadable message by its id", async () => {
  const world = await connectedWorld();
  const line = world.network.of("ses_1");
  const readable = incoming(world, { chat: "1@g.us", participant: "77@lid" });
  const forged = { ...readable, participant: "88@lid", text: "forged" };
  const report = { ...readable, type: "unknown" as const, text: null, undecryptable: true };
  for (const message of [report, forged, readable, forged]) await line.receive(message);
  const emitted = (await world.events("message.received")).map(({ data }) =>
    data as unknown as Record<string, unknown>
  );
  assert.deepEqual(emitted.map(({ participant, text }) => [participant, text]), [["77@lid", null], ["77@lid", "hola"]]);
  await world.supervisor.stop();
});

Deno.test("a report yields to the message that came just before it", async () => {
  const world = await connectedWorld();
  const readable = incoming(world);
  const report = { ...readable, type: "unknown" as const, text: null, undecryptable: true };
  const line = world.network.of("ses_1");
  await Promise.all([line.receive(readable), line.receive(report)]);
  assert.deepEqual(await received(world), [readable.networkId]);
  await world.supervisor.stop();
});

Deno.test("a message that an earlier owner of the line keeps meanwhile is not emitted again", async () => {
  const world = await connectedWorld();
  const message = incoming(world);
  const seen = lineKeys.seen("ses_1", message.chat, message.networkId);
  const { events } = world.network.of("ses_1");
  const isSettled = await events.message(message, async () => {
    await world.kv.commit(new Change().set(seen, world.clock.now()));
  });
  assert.equal(isSettled, false);
  assert.deepEqual(await received(world), []);
  await world.supervisor.stop();
});

Deno.test("a row that says only when still means that its message was emitted", async () => {
  const world = await connectedWorld();
  const message = incoming(world);
  await world.kv.commit(new Change().set(lineKeys.seen("ses_1", message.chat, message.networkId), world.clock.now()));
  await world.network.of("ses_1").receive(message);
  assert.deepEqual(await received(world), []);
  await world.supervisor.stop();
});

Deno.test("a message from before the age limit is no news, one within it is", async () => {
  const world = await connectedWorld();
  const at = (age: number) => Math.floor((world.clock.now() - age) / 1000);
  const line = world.network.of("ses_1");
  await line.receive(incoming(world, { timestamp: at(MAX_MESSAGE_AGE_MS + 60_000) }));
  const young = incoming(world, { timestamp: at(MAX_MESSAGE_AGE_MS - 60_000) });
  await line.receive(young);
  assert.deepEqual(await received(world), [young.networkId]);
  await world.supervisor.stop();
});

Deno.test("a slow file delays its own chat alone, and order within the chat stays", async () => {
  const { world, waiting } = await worldWithSlowMedia();
  const line = world.network.of("ses_1");
  const slow = incoming(world, { chat: "a@lid", type: "imageMessage", media: MEDIA });
  const behind = incoming(world, { chat: "a@lid" });
  const other = incoming(world, { chat: "b@lid" });
  const kept = [line.receive(slow), line.receive(behind), line.receive(other)];
  await settle();
  assert.deepEqual(await received(world), [other.networkId]);
  waiting[0]!.release();
  await Promise.all(kept);
  assert.deepEqual(await received(world), [other.networkId, slow.networkId, behind.networkId]);
  const data = (await world.events("message.received"))[1]!.data as unknown as { media: { filename: string } };
  assert.equal(data.media.filename, "a.png");
  // The file's row stands or falls with the event.
  assert.ok((await world.kv.get(mediaKeys.file(`med_${slow.networkId}`))).value);
  await world.supervisor.stop();
});

Deno.test("a file that was kept is not fetched again when its message comes again", async () => {
  const { world, waiting } = await worldWithSlowMedia();
  const message = incoming(world, { type: "imageMessage", media: MEDIA });
  const line = world.network.of("ses_1");
  const kept = [line.receive(message), line.receive(message)];
  await settle();
  waiting[0]!.release();
  await Promise.all(kept);
  assert.equal(waiting.length, 1);
  await world.supervisor.stop();
});

Deno.test("at most four files of a line are fetched at a time, and all come through", async () => {
  const { world, waiting } = await worldWithSlowMedia();
  const line = world.network.of("ses_1");
  const kept = Array.from(
    { length: 10 },
    (_, i) => line.receive(incoming(world, { chat: `${i}@lid`, media: MEDIA, type: "imageMessage" })),
  );
  for (let done = 0; done < 10; done++) {
    await settle();
    assert.equal(waiting.length, Math.min(10, done + 4));
    waiting[done]!.release();
  }
  await Promise.all(kept);
  assert.equal((await received(world)).length, 10);
  await world.supervisor.stop();
});

Deno.test("a message is not answered for before it is on disk", async () => {
  const world = await connectedWorld();
  world.kv.trouble = new StoreError("locked", "another process");
  let kept = false;
  const message = incoming(world);
  void world.network.of("ses_1").receive(message).then(() => kept = true);
  await world.clock.advance(10_000);
  assert.equal(kept, false);
  world.kv.trouble = null;
  await world.clock.advance(2_000);
  assert.equal(kept, true);
  assert.deepEqual(await received(world), [message.networkId]);
  await world.supervisor.stop();
});

Deno.test("a stop gives up a file that is being fetched, and the message comes again after the next boot", async () => {
  const { world, waiting } = await worldWithSlowMedia();
  const message = incoming(world, { media: MEDIA, type: "imageMessage" });
  const kept = world.network.of("ses_1").receive(message);
  const refused = assert.rejects(kept);
  await settle();
  await world.supervisor.stop();
  assert.ok(waiting[0]!.signal.aborted);
  waiting[0]!.release();
  await refused;
  assert.deepEqual(await received(world), []);
  await world.boot();
  await world.clock.advance(100);
  const again = world.network.of("ses_1").receive(message);
  await settle();
  waiting[1]!.release();
  await again;
  assert.deepEqual(await received(world), [message.networkId]);
  await world.supervisor.stop();
});

Deno.test("a message that cannot be kept is left, and the next in its chat comes through", async () => {
  const world = await connectedWorld();
  const poison = incoming(world);
  Object.defineProperty(poison, "pushName", {
    get() {
      throw new RangeError("too deep");
    },
  });
  const next = incoming(world);
  const line = world.network.of("ses_1");
  await Promise.all([line.receive(poison), line.receive(next)]);
  assert.deepEqual(await received(world), [next.networkId]);
  assert.equal((await world.line()).status, "connected");
  await world.supervisor.stop();
});

Deno.test("seen rows are swept once their messages are too old to come again, not before", async () => {
  const world = await connectedWorld();
  const message = incoming(world);
  await world.network.of("ses_1").receive(message);
  const now = world.clock.now();
  const sweep = makeSweepSeen(world.kv);
  assert.equal(await sweep(now + MAX_MESSAGE_AGE_MS), 0);
  assert.equal(await sweep(now + MAX_MESSAGE_AGE_MS + 2 * 86_400_000), 1);
  await world.supervisor.stop();
});

Deno.test("receiving counts as use of the line", async () => {
  const world = await connectedWorld();
  await world.clock.advance(60_000);
  await world.network.of("ses_1").receive(incoming(world));
  assert.equal((await world.lines.get("acc_1", "ses_1")).lastUsed, world.clock.now());
  await world.supervisor.stop();
});
