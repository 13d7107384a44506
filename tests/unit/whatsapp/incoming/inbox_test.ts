/** Handing messages over: in order within a chat, never lost, and never held up by one that is bad. */
import assert from "node:assert/strict";
import { encodeWAMessage, proto } from "@whiskeysockets/baileys";
import { StoreError } from "../../../../src/store/kv.ts";
import type { Incoming } from "../../../../src/whatsapp/incoming.ts";
import { type Inbox, makeAlone, makeInbox } from "../../../../src/whatsapp/baileys/incoming/inbox.ts";
import type { JournalEntry, UndecryptedEntry } from "../../../../src/whatsapp/baileys/incoming/journal.ts";
import { settle, testRuntime } from "../../../support/runtime.ts";

const ME = "551@s.whatsapp.net";
const FRIEND = "552@s.whatsapp.net";

/** An inbox whose journal notes what is crossed off, and whose receiver does as it is told. */
function scene(receive: (message: Incoming) => Promise<void> = () => Promise.resolve()) {
  const runtime = testRuntime();
  const done: string[] = [];
  const doneUndecrypted: string[] = [];
  const received: Incoming[] = [];
  const counted: [id: string, attempts: number][] = [];
  const aside: string[] = [];
  const metric = { setAside: 0 };
  const settledBy = { receiver: false };
  /** Calls of the journal that the store refuses, from now on. */
  const refusals = { done: 0, doneUndecrypted: 0 };
  function unlessRefused(call: keyof typeof refusals): void {
    if (refusals[call]-- > 0) throw new StoreError("unavailable", "the store is away");
  }
  const journal: Parameters<typeof makeInbox>[0]["journal"] = {
    settling: () => () => assert.fail("nobody settles here"),
    done: async (entry: JournalEntry) => {
      await Promise.resolve(unlessRefused("done"));
      done.push(entry.part);
    },
    doneUndecrypted: async (entry: UndecryptedEntry) => {
      await Promise.resolve(unlessRefused("doneUndecrypted"));
      doneUndecrypted.push(entry.stanza);
    },
    count: (entry, attempts) => Promise.resolve(void counted.push([entry.attrs.id!, attempts])),
    setAside: () => assert.fail("nobody settles here"),
    doneAside: (entry) => Promise.resolve(void aside.push(entry.attrs.id!)),
  };
  const inbox: Inbox = makeInbox({
    journal,
    runtime,
    alone: makeAlone(runtime.clock),
    setAside: () => void metric.setAside++,
    context: {
      me: { id: "551:1@s.whatsapp.net" },
      clock: runtime.clock,
      phoneOf: () => Promise.resolve(null),
      findOriginal: () => Promise.resolve(null),
      isLost: (id) => Promise.resolve(inbox.waitsFor(id)),
      timer: () => Promise.resolve(),
      isAdmin: () => assert.fail("no deletions here"),
      media: () => assert.fail("no media here"),
      history: () => assert.fail("no history here"),
    },
    receive: async (message) => {
      received.push(message);
      await receive(message);
      return settledBy.receiver;
    },
  });
  const texts = () => received.map(({ text }) => text);
  const counts = { counted, aside, metric };
  return { runtime, inbox, received, texts, done, doneUndecrypted, settledBy, refusals, ...counts };
}

function entry(text: string, { from = FRIEND, id = text } = {}): JournalEntry {
  const attrs = { id, from, t: "1768478400" };
  const plaintext = encodeWAMessage(proto.Message.fromObject({ conversation: text }));
  return { part: `part of ${id}`, stanza: `${from}||${id}`, sequence: 1, attrs, plaintext };
}

/** What the owner's phone answers when it is asked for messages that this device could not read. */
function resentByPhone(
  id: string,
  { from, participant, text }: { from: string; participant?: string; text: string },
): JournalEntry {
  const message = { key: { remoteJid: from, participant, id, fromMe: false }, message: { conversation: text } };
  const webMessageInfoBytes = proto.WebMessageInfo.encode(proto.WebMessageInfo.fromObject(message)).finish();
  const answer = { peerDataOperationResult: [{ placeholderMessageResendResponse: { webMessageInfoBytes } }] };
  const attrs = { id: "ANSWER", from: ME, t: "1768478400", category: "peer" };
  const protocolMessage = { peerDataOperationRequestResponseMessage: answer };
  const plaintext = encodeWAMessage(proto.Message.fromObject({ protocolMessage }));
  return { part: "part of ANSWER", stanza: `${ME}||ANSWER`, sequence: 1, attrs, plaintext };
}

/** A stanza of a member in a group. */
function ofMember(id: string, participant: string): Pick<JournalEntry, "stanza" | "attrs"> {
  const from = "1@g.us";
  return { stanza: `${from}|${participant}|${id}`, attrs: { id, from, participant, t: "1768478400" } };
}

function undecrypted(id: string, since: number): UndecryptedEntry {
  return { stanza: `${FRIEND}||${id}`, since, attrs: { id, from: FRIEND, t: "1768478400" } };
}

Deno.test("nothing is handed over before the login, and then everything in order", async () => {
  const { inbox, texts, done } = scene();
  for (const text of ["one", "two", "three"]) inbox.decrypted(entry(text));
  await settle();
  assert.deepEqual(texts(), []);
  inbox.open();
  await settle(10);
  assert.deepEqual(texts(), ["one", "two", "three"]);
  assert.deepEqual(done, ["part of one", "part of two", "part of three"]);
});

Deno.test("a message is crossed off only when its receiver has it", async () => {
  const taken = Promise.withResolvers<void>();
  const { inbox, done } = scene(() => taken.promise);
  inbox.open();
  inbox.decrypted(entry("one"));
  await settle();
  assert.deepEqual(done, []);
  taken.resolve();
  await settle();
  assert.deepEqual(done, ["part of one"]);
});

Deno.test("what its receiver settled is not crossed off once more", async () => {
  const { inbox, done, settledBy } = scene();
  settledBy.receiver = true;
  inbox.open();
  inbox.decrypted(entry("one"));
  await settle();
  assert.deepEqual(done, []);
});

Deno.test("a slow chat holds up no other", async () => {
  const { inbox, texts } = scene((message) => message.text === "slow" ? new Promise(() => {}) : Promise.resolve());
  inbox.open();
  inbox.decrypted(entry("slow"));
  inbox.decrypted(entry("behind it"));
  inbox.decrypted(entry("elsewhere", { from: "553@s.whatsapp.net" }));
  await settle();
  assert.deepEqual(texts(), ["slow", "elsewhere"]);
});

Deno.test("a receiver that goes on failing is asked five times, then the message stays in the journal and the next goes on", async () => {
  const { inbox, texts, done, runtime } = scene(({ text }) =>
    text === "bad" ? Promise.reject(new Error("no")) : Promise.resolve()
  );
  inbox.open();
  inbox.decrypted(entry("bad"));
  inbox.decrypted(entry("good"));
  await runtime.clock.advance(60_000);
  assert.deepEqual(texts(), ["bad", "bad", "bad", "bad", "bad", "good"]);
  assert.deepEqual(done, ["part of good"]);
});

Deno.test("while the store is away a chat waits: nothing overtakes what could not be handed over", async () => {
  let isAway = false;
  const { inbox, texts, done, runtime } = scene(() =>
    isAway ? Promise.reject(new StoreError("unavailable", "the store is away")) : Promise.resolve()
  );
  inbox.open();
  isAway = true;
  inbox.decrypted(entry("first"));
  inbox.decrypted(entry("second"));
  await runtime.clock.advance(60_000);
  assert.deepEqual(new Set(texts()), new Set(["first"]));
  isAway = false;
  await runtime.clock.advance(2_000);
  assert.deepEqual(done, ["part of first", "part of second"]);
  assert.equal(texts().at(-1), "second");
});

Deno.test("a message that could not be crossed off is handed over once more, and its chat waits for that", async () => {
  const { inbox, texts, done, runtime, refusals } = scene();
  inbox.open();
  refusals.done = 1;
  inbox.decrypted(entry("first"));
  inbox.decrypted(entry("second"));
  await runtime.clock.advance(2_000);
  assert.deepEqual(texts(), ["first", "first", "second"]);
  assert.deepEqual(done, ["part of first", "part of second"]);
});

Deno.test("a loss whose report could not be crossed off is not kept for the next login", async () => {
  const { inbox, doneUndecrypted, runtime, refusals } = scene();
  inbox.open();
  refusals.doneUndecrypted = 3;
  inbox.undecrypted(undecrypted("L8", runtime.clock.now()));
  await runtime.clock.advance(70_000);
  assert.deepEqual(doneUndecrypted, [`${FRIEND}||L8`]);
});

Deno.test("bytes that make no sense are dropped, and said without their content", async () => {
  const { inbox, texts, done, runtime } = scene();
  inbox.open();
  inbox.decrypted({ ...entry("poison"), plaintext: Uint8Array.of(200, 200, 200, 1) });
  inbox.decrypted(entry("fine"));
  await settle(10);
  assert.deepEqual(texts(), ["fine"]);
  assert.deepEqual(done, ["part of poison", "part of fine"]);
  assert.equal(runtime.lines.filter(({ msg }) => msg === "an incoming message makes no sense").length, 1);
});

Deno.test("a message that could not be read is reported once, after a minute in which its sender did not help", async () => {
  const { inbox, received, doneUndecrypted, runtime } = scene();
  inbox.open();
  const lost = undecrypted("L1", runtime.clock.now());
  inbox.undecrypted(lost);
  inbox.undecrypted(lost);
  await runtime.clock.advance(59_000);
  assert.deepEqual(received, []);
  await runtime.clock.advance(2_000);
  assert.deepEqual(received.map(({ networkId, undecryptable }) => ({ networkId, undecryptable })), [
    { networkId: "L1", undecryptable: true },
  ]);
  assert.deepEqual(doneUndecrypted, [lost.stanza]);
});

Deno.test("a stanza that names no sender, and could not be read, is dropped: no login finds it again", async () => {
  const { inbox, received, doneUndecrypted, runtime } = scene();
  inbox.open();
  const attrs = { id: "N1", from: "1@g.us", t: "1768478400" };
  inbox.undecrypted({ stanza: "1@g.us||N1", since: runtime.clock.now(), attrs });
  await runtime.clock.advance(61_000);
  assert.deepEqual(received, []);
  assert.deepEqual(doneUndecrypted, ["1@g.us||N1"]);
  assert.equal(runtime.lines.filter(({ msg }) => msg === "an incoming message makes no sense").length, 1);
});

Deno.test("a message that came at the second attempt is not reported as lost", async () => {
  const { inbox, received, doneUndecrypted, runtime } = scene();
  inbox.open();
  inbox.undecrypted(undecrypted("L2", runtime.clock.now()));
  inbox.decrypted(entry("here it is", { id: "L2" }));
  await runtime.clock.advance(120_000);
  assert.deepEqual(received.map(({ undecryptable }) => undecryptable), [false]);
  assert.equal(doneUndecrypted.length, 1);
});

Deno.test("a message that the owner's phone sent again is not reported as lost, however the phone names its chat", async () => {
  const { inbox, received, doneUndecrypted, runtime } = scene();
  inbox.open();
  const stanza = { stanza: "77@lid||L4", attrs: { id: "L4", from: "77@lid", t: "1768478400" } };
  inbox.undecrypted({ ...stanza, since: runtime.clock.now() });
  inbox.undecrypted(undecrypted("L5", runtime.clock.now()));
  inbox.decrypted(resentByPhone("L4", { from: FRIEND, text: "here it is" }));
  await runtime.clock.advance(61_000);
  assert.deepEqual(received.map(({ networkId, text }) => [networkId, text]), [["L4", "here it is"], ["L5", null]]);
  assert.deepEqual(doneUndecrypted, ["77@lid||L4", `${FRIEND}||L5`]);
});

Deno.test("a message of another chat that happens to have the same id does not stand for a lost one", async () => {
  const { inbox, received, runtime } = scene();
  inbox.open();
  inbox.undecrypted(undecrypted("L6", runtime.clock.now()));
  inbox.decrypted(entry("other", { id: "L6", from: "553@s.whatsapp.net" }));
  await runtime.clock.advance(61_000);
  assert.deepEqual(received.map(({ text, undecryptable }) => [text, undecryptable]), [["other", false], [null, true]]);
});

Deno.test("a message that bears the id of another member's unreadable one is dropped: the attempt to come would count as its double", async () => {
  const { inbox, texts, done, runtime } = scene();
  inbox.open();
  const lost = ofMember("LOST", "77:3@lid");
  inbox.undecrypted({ ...lost, since: runtime.clock.now() });
  inbox.decrypted({ ...entry("forged", { id: "LOST" }), ...ofMember("LOST", "88:1@lid") });
  inbox.decrypted({ ...entry("again", { id: "LOST" }), ...lost, part: "part of again" });
  inbox.decrypted({ ...entry("another", { id: "FINE" }), ...ofMember("FINE", "88:1@lid") });
  await settle(10);
  assert.deepEqual(texts(), ["again", "another"]);
  assert.deepEqual(done, ["part of LOST", "part of again", "part of FINE"]);
});

Deno.test("a member's unreadable stanza with the id of another's earlier message does not cost that message", async () => {
  const { inbox, texts, runtime } = scene();
  const forged = { ...ofMember("SAID", "88:1@lid"), since: runtime.clock.now() };
  inbox.decrypted({ ...entry("said", { id: "SAID" }), ...ofMember("SAID", "77:3@lid") });
  inbox.undecrypted(forged);
  inbox.open();
  await settle(10);
  assert.deepEqual(texts(), ["said"]);
});

Deno.test("nor does it cost the second attempt of an earlier message that was unreadable, too", async () => {
  const { inbox, texts, runtime } = scene();
  inbox.open();
  const [lost, forged] = [ofMember("LOST", "77:3@lid"), ofMember("LOST", "88:1@lid")];
  for (const stanza of [lost, forged]) inbox.undecrypted({ ...stanza, since: runtime.clock.now() });
  inbox.decrypted({ ...entry("forged", { id: "LOST" }), ...forged });
  inbox.decrypted({ ...entry("again", { id: "LOST" }), ...lost });
  await settle(10);
  assert.deepEqual(texts(), ["again"]);
});

Deno.test("a message that the owner's phone sent again ends no wait for another member's of the same id", async () => {
  const { inbox, received, runtime } = scene();
  inbox.open();
  for (const member of ["77:3@lid", "88:1@lid"]) {
    inbox.undecrypted({ ...ofMember("LOST", member), since: runtime.clock.now() });
  }
  inbox.decrypted(resentByPhone("LOST", { from: "1@g.us", participant: "88@lid", text: "here it is" }));
  await runtime.clock.advance(61_000);
  assert.deepEqual(received.map(({ participant, undecryptable }) => [participant, undecryptable]), [
    ["88@lid", false],
    ["77@lid", true],
  ]);
});

Deno.test("what the owner's phone told the device, and could not be read, is no message that was lost", async () => {
  const { inbox, received, doneUndecrypted, runtime } = scene();
  inbox.open();
  const attrs = { id: "P1", from: ME, t: "1768478400", category: "peer" };
  inbox.undecrypted({ stanza: `${ME}||P1`, since: runtime.clock.now(), attrs });
  await runtime.clock.advance(61_000);
  assert.deepEqual(received, []);
  assert.deepEqual(doneUndecrypted, [`${ME}||P1`]);
});

Deno.test("a sender key that came alone does not count as the message", async () => {
  const { inbox, received, runtime } = scene();
  inbox.open();
  inbox.undecrypted(undecrypted("L3", runtime.clock.now()));
  const share = proto.Message.fromObject({ senderKeyDistributionMessage: { groupId: "1@g.us" } });
  inbox.decrypted({ ...entry("", { id: "L3" }), plaintext: encodeWAMessage(share) });
  await runtime.clock.advance(61_000);
  assert.deepEqual(received.map(({ undecryptable }) => undecryptable), [true]);
});

Deno.test("after close nothing is handed over, and what is under way is waited for", async () => {
  const taken = Promise.withResolvers<void>();
  const { inbox, texts, done } = scene(() => taken.promise);
  inbox.open();
  inbox.decrypted(entry("under way"));
  inbox.decrypted(entry("waiting"));
  await settle();
  const closed = inbox.close();
  taken.resolve();
  await closed;
  assert.deepEqual(texts(), ["under way"]);
  assert.deepEqual(done, ["part of under way"]);
});

Deno.test("what the end of the connection leaves in the journal alarms nobody", async () => {
  const asked = Promise.withResolvers<void>();
  const { inbox, done, runtime } = scene(() => asked.promise);
  inbox.open();
  inbox.decrypted(entry("one"));
  await settle();
  const closed = inbox.close();
  asked.reject(new StoreError("unavailable", "the connection is closed"));
  await closed;
  assert.deepEqual(done, []);
  const said = runtime.lines.map(({ level, msg }) => ({ level, msg }));
  assert.deepEqual(said, [{ level: 20, msg: "an incoming message stays in the journal" }]);
});

Deno.test("messages that the owner's phone resends although nothing was lost are refused", async () => {
  const { inbox, received, done } = scene();
  inbox.open();
  inbox.decrypted(resentByPhone("INVENTED", { from: FRIEND, text: "pay me" }));
  await settle(10);
  assert.deepEqual(received, []);
  assert.deepEqual(done, ["part of ANSWER"]);
});

Deno.test("of an answer with thousands of messages no more is read than a phone is asked for", async () => {
  const { inbox, received } = scene();
  inbox.open();
  inbox.undecrypted(undecrypted("L1", Number.MAX_SAFE_INTEGER));
  const result = (id: string) => {
    const message = { key: { remoteJid: FRIEND, id }, message: { conversation: id } };
    return { placeholderMessageResendResponse: { webMessageInfoBytes: proto.WebMessageInfo.encode(message).finish() } };
  };
  const peerDataOperationResult = Array.from({ length: 3_000 }, (_, i) => result(i === 3 ? "L1" : `X${i}`));
  const protocolMessage = { peerDataOperationRequestResponseMessage: { peerDataOperationResult } };
  const { attrs } = resentByPhone("", { from: FRIEND, text: "" });
  const plaintext = encodeWAMessage(proto.Message.fromObject({ protocolMessage }));
  inbox.decrypted({ ...entry("answer"), attrs, plaintext });
  await settle(40);
  assert.deepEqual(received.map(({ networkId }) => networkId), ["L1"]);
});

Deno.test("what may end the process is counted on disk before it is handed over", async () => {
  const { inbox, texts, counted } = scene();
  inbox.open();
  inbox.decrypted(entry("short"));
  inbox.decrypted(entry("x".repeat(300_000), { id: "LONG" }));
  inbox.leftOver(entry("left"));
  inbox.leftOver({ ...entry("suspect"), attempts: 1 });
  await settle(20);
  assert.equal(texts().length, 4);
  assert.deepEqual(counted.toSorted(), [["LONG", 1], ["left", 1], ["suspect", 2]]);
});

Deno.test("an attempt that failed without ending the process is not held against the message", async () => {
  const { inbox, counted, aside, runtime } = scene(() => Promise.reject(new Error("the receiver is ill")));
  inbox.open();
  inbox.leftOver(entry("left"));
  await runtime.clock.advance(60_000);
  assert.deepEqual(counted, [["left", 1], ["left", 0]]);
  assert.deepEqual(aside, []);
});

Deno.test("a message during which the process ended twice is set aside, told and counted; one of a device silently", async () => {
  const { inbox, received, aside, counted, metric } = scene();
  inbox.open();
  inbox.leftOver({ ...entry("poison"), attempts: 2 });
  const peer = resentByPhone("L1", { from: FRIEND, text: "" });
  inbox.leftOver({ ...peer, attempts: 2 });
  inbox.leftOver(entry("next"));
  await settle(20);
  assert.deepEqual(received.map(({ networkId, undecryptable }) => [networkId, undecryptable]).toSorted(), [
    ["next", false],
    ["poison", true],
  ]);
  assert.deepEqual(aside.toSorted(), ["ANSWER", "poison"]);
  assert.deepEqual([counted, metric.setAside], [[["next", 1]], 2]);
});
