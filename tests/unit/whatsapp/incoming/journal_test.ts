/** The journal, with real Signal sessions: a plaintext and its ratchet are kept together or not at all. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type BinaryNode, encodeWAMessage, proto, unpadRandomMax16 } from "@whiskeysockets/baileys";
import { openDenoKv } from "../../../../src/store/deno_kv/deno_kv.ts";
import { networkKeys, sweepExpired } from "../../../../src/whatsapp/baileys/rows.ts";
import { Change, retryOnConflict, StoreError } from "../../../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../../../src/store/seal.ts";
import { forgetLine, openAuthState } from "../../../../src/whatsapp/baileys/auth_state.ts";
import { Decryption } from "../../../../src/whatsapp/baileys/incoming/decryption.ts";
import {
  Journal,
  type JournalEntry,
  type UndecryptedEntry,
} from "../../../../src/whatsapp/baileys/incoming/journal.ts";
import { recall } from "../../../../src/whatsapp/baileys/stored_messages.ts";
import type { Incoming } from "../../../../src/whatsapp/incoming.ts";
import { plainIncoming } from "../../../support/incoming.ts";
import { type FailingKv, failingKv } from "../../../support/failing_kv.ts";
import { settle, testRuntime } from "../../../support/runtime.ts";
import { quiet, type SignalPeer, signalPeer, withTransactions } from "../../../support/signal_peer.ts";

const lineId = "ses_1";
const LINE = "222@lid";
const FRIEND = "111@lid";
const GROUP = "120363@g.us";
const runtime = testRuntime();
const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);

/** A line that begins anew on the same store, as after a crash. */
async function boot(kv: FailingKv) {
  const auth = await openAuthState({ kv, seal, lineId });
  const decrypted: JournalEntry[] = [];
  const undecrypted: UndecryptedEntry[] = [];
  const broken: StoreError[] = [];
  const journal = new Journal({ kv, seal, lineId }, auth, runtime.clock);
  const decryption = new Decryption({
    journal,
    auth,
    decrypted: (entry) => decrypted.push(entry),
    undecrypted: (entry) => undecrypted.push(entry),
    broken: (error) => broken.push(error),
  });
  const store = withTransactions(auth.keys);
  const repository = decryption.makeSignalRepository({ creds: auth.creds, keys: store }, quiet);

  /** As the library does with a message stanza. */
  async function receive(stanza: BinaryNode): Promise<string> {
    await decryption.watch(stanza);
    const [enc] = stanza.content as BinaryNode[];
    const ciphertext = enc!.content as Uint8Array;
    const plaintext = enc!.attrs.type === "skmsg"
      ? await repository.decryptGroupMessage({ group: GROUP, authorJid: FRIEND, msg: ciphertext })
      : await repository.decryptMessage({ jid: FRIEND, type: enc!.attrs.type as "msg" | "pkmsg", ciphertext });
    return textOf(plaintext);
  }
  return { auth, journal, decryption, repository, receive, decrypted, undecrypted, broken };
}

async function withLine(
  play: (kv: FailingKv, send: (text: string, id?: string) => Promise<BinaryNode>, friend: SignalPeer) => Promise<void>,
) {
  const kv = failingKv(await openDenoKv(":memory:", { runtime }));
  const friend = signalPeer(FRIEND);
  let count = 0;
  try {
    const { auth } = await boot(kv);
    Object.assign(auth.creds, { me: { id: "551@s.whatsapp.net", lid: LINE }, account: { details: Buffer.from([1]) } });
    await auth.saveCreds();
    await friend.meet({ jid: LINE, creds: auth.creds, keys: auth.keys });
    await play(kv, async (text, id = `M${++count}`) => stanza(id, await friend.encrypt(LINE, text)), friend);
  } finally {
    kv.close();
  }
}

function stanza(id: string, { type, ciphertext }: { type: string; ciphertext: Uint8Array }): BinaryNode {
  const enc = { tag: "enc", attrs: { v: "2", type }, content: ciphertext };
  return { tag: "message", attrs: { id, from: FRIEND, t: "1700000000" }, content: [enc] };
}

/** Receives a message under the id and hands it over as a receiver does. */
async function handOver(
  { kv, line, send }: {
    kv: FailingKv;
    line: Awaited<ReturnType<typeof boot>>;
    send: (text: string, id?: string) => Promise<BinaryNode>;
  },
  id: string,
  fields: Partial<Incoming>,
): Promise<void> {
  await line.receive(await send("any", id));
  const entry = line.decrypted.at(-1)!;
  const settle = line.journal.settling(entry, [plainIncoming({ networkId: id, ...fields })]);
  await retryOnConflict(kv, async () => {
    const change = new Change();
    await settle(change);
    return { change, result: null };
  });
}

/** The same stanza as the network delivers it after a reconnect: other objects, same bytes. */
function again({ tag, attrs, content }: BinaryNode): BinaryNode {
  const copies = (content as BinaryNode[]).map((enc) => ({ ...enc, content: Buffer.from(enc.content as Uint8Array) }));
  return { tag, attrs: { ...attrs }, content: copies };
}

function textOf(plaintext: Uint8Array): string {
  return proto.Message.decode(unpadRandomMax16(plaintext)).conversation ?? "";
}

function writesJournal(change: Change): boolean {
  return change.mutations.some(({ kind, key }) => kind === "set" && key.includes("journal"));
}

Deno.test("a decrypted message is in the journal in the commit that stores its ratchet", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    assert.equal(await line.receive(await send("hello")), "hello");
    const [commit] = kv.commits.filter(writesJournal);
    assert.ok(commit?.mutations.some(({ key }) => key.includes("session")), "the session is in the same commit");
    assert.ok(
      commit?.mutations.some(({ kind, key }) => kind === "delete" && key.includes("pre-key")),
      "and so is the spent pre-key",
    );
    assert.equal(line.decrypted.length, 1);
    assert.equal(line.decrypted[0]?.attrs.id, "M1");
  }));

Deno.test("a message that was not handed over before a crash is left for the next login, once", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    for (const text of ["one", "two", "three"]) await line.receive(await send(text));
    await line.journal.done(line.decrypted[1]!);
    const { journal } = await boot(kv);
    const { decrypted } = await journal.leftovers();
    assert.deepEqual(decrypted.map(({ plaintext }) => textOf(plaintext)), ["one", "three"]);
    for (const entry of decrypted) await journal.done(entry);
    assert.deepEqual((await (await boot(kv)).journal.leftovers()).decrypted, []);
  }));

Deno.test("a message under the id of another takes nothing from that, and is not kept in its place", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    const hand = (text: string, fields: Partial<Incoming>) => handOver({ kv, line, send }, "3A", { text, ...fields });
    const kept = async () => (await recall({ kv, seal, lineId }, "3A"))?.text;
    await hand("pay Ana", { chat: GROUP, participant: FRIEND });
    for (
      const fields of [{ chat: GROUP, participant: "333@lid" }, { chat: "333@lid" }, { chat: FRIEND, fromMe: true }]
    ) {
      await hand("pay me", fields);
      assert.equal(await kept(), "pay Ana");
    }
    await hand("pay Ana", { chat: GROUP, participant: FRIEND });
    assert.equal(await kept(), "pay Ana");
    assert.deepEqual((await line.journal.leftovers()).decrypted, []);
  }));

Deno.test("a message that was handed over is not read again, also after it was changed, repeated or deleted", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    const hand = (id: string, fields: Partial<Incoming> = {}) =>
      handOver({ kv, line, send }, id, { chat: FRIEND, ...fields });
    const isKnown = async (entry: JournalEntry) => await (await boot(kv)).journal.recall(entry) !== null;
    await hand("3A");
    const [first] = line.decrypted;
    const seen = async () => (await kv.get(networkKeys.waSeen(lineId, first!.part))).value;
    assert.equal(await seen(), null, "its original names it: no row of its own");
    assert.deepEqual(await line.journal.recall(first!), Uint8Array.of(1));
    await hand("3B", { type: "unknown", change: { kind: "edited", target: "3A", text: "at seven" } });
    await hand("3A");
    for (const entry of line.decrypted) assert(await isKnown(entry), entry.part);
    await hand("3C", { type: "reactionMessage" });
    await hand("3D", { type: "unknown", change: { kind: "deleted", target: "3A", byAdmin: false } });
    assert.notEqual(await seen(), null);
    for (const entry of line.decrypted) assert(await isKnown(entry), entry.part);
    const other = { ...first!, part: `${first!.stanza}|other` };
    assert.equal(await isKnown(other), false, "another part of the stanza");
  }));

Deno.test("an edit changes what is kept of its message, and a deletion removes it", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    const hand = (id: string, fields: Partial<Incoming>) =>
      handOver({ kv, line, send }, id, { chat: FRIEND, ...fields });
    const edit = (text: string | null) =>
      ({ type: "unknown", change: { kind: "edited", target: "3A", text } }) as const;
    const kept = async () => (await recall({ kv, seal, lineId }, "3A"))?.text;
    await hand("3A", { text: "at six" });
    await hand("3B", edit("at seven"));
    assert.equal(await kept(), "at seven");
    await hand("3C", { ...edit("at eight"), fromMe: true });
    await hand("3D", edit(null));
    assert.equal(await kept(), "at seven");
    await hand("3E", { type: "unknown", change: { kind: "deleted", target: "3A", byAdmin: false } });
    assert.equal(await kept(), undefined);
    await hand("3F", edit("at nine"));
    assert.equal(await kept(), undefined);
  }));

Deno.test("a change from another chat leaves what is kept of a message as it is, whoever knows its id", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    const hand = (id: string, fields: Partial<Incoming>) => handOver({ kv, line, send }, id, fields);
    const edit = (target: string) => ({ type: "unknown", change: { kind: "edited", target, text: "pay me" } }) as const;
    const deletion = (target: string) =>
      ({ type: "unknown", change: { kind: "deleted", target, byAdmin: true } }) as const;
    const kept = async (id: string) => (await recall({ kv, seal, lineId }, id))?.text;
    await hand("3A", { chat: GROUP, participant: FRIEND, number: "111", text: "pay Ana" });
    await hand("3B", { chat: "666@lid", number: "666", ...edit("3A") });
    await hand("3C", { chat: "666@lid", number: "666", ...deletion("3A") });
    await hand("3D", { chat: "120363000000000666@g.us", participant: FRIEND, number: "111", ...edit("3A") });
    await hand("3E", { chat: FRIEND, number: "111", ...deletion("3A") });
    assert.equal(await kept("3A"), "pay Ana");

    await hand("4A", { chat: "111@s.whatsapp.net", number: "111", text: "at six" });
    await hand("4B", { chat: "222@lid", number: null, ...edit("4A") });
    assert.equal(await kept("4A"), "at six");
    await hand("4C", { chat: "111@lid", number: "111", ...edit("4A") });
    assert.equal(await kept("4A"), "pay me", "a person's chat may have another name");
    await hand("4D", { chat: "111@lid", number: "111", fromMe: true, ...deletion("4A") });
    assert.equal(await kept("4A"), undefined);
  }));

Deno.test("a stanza delivered again before it was handed over decrypts from the journal", () =>
  withLine(async (kv, send) => {
    const first = await send("first");
    const second = await send("second");
    const line = await boot(kv);
    await line.receive(first);
    await line.receive(second);
    const rebooted = await boot(kv);
    assert.equal(await rebooted.receive(again(first)), "first");
    assert.equal(await rebooted.receive(again(second)), "second");
    assert.deepEqual(rebooted.undecrypted, [], "nobody is asked for it");
    assert.deepEqual(rebooted.decrypted, [], "it is in the journal once");
    assert.equal((await rebooted.journal.leftovers()).decrypted.length, 2);
  }));

Deno.test("a stanza delivered again after it was handed over is nothing new and no failure", () =>
  withLine(async (kv, send) => {
    const node = await send("hello");
    const line = await boot(kv);
    await line.receive(node);
    await line.journal.done(line.decrypted[0]!);
    const rebooted = await boot(kv);
    assert.equal(await rebooted.receive(again(node)), "");
    assert.deepEqual(rebooted.undecrypted, []);
    assert.deepEqual((await rebooted.journal.leftovers()).decrypted, []);
  }));

Deno.test("a crash before the commit leaves neither plaintext nor ratchet: the next delivery decrypts", () =>
  withLine(async (kv, send) => {
    const node = await send("hello");
    const line = await boot(kv);
    kv.fails = writesJournal;
    await assert.rejects(line.receive(node), StoreError);
    assert.equal(line.broken.length, 1, "the connection is told to end");
    assert.deepEqual(line.decrypted, []);
    kv.fails = () => false;
    const rebooted = await boot(kv);
    assert.equal(await rebooted.receive(again(node)), "hello");
    assert.equal(rebooted.decrypted.length, 1);
  }));

Deno.test("a crash while it is crossed off leaves it in the journal", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    await line.receive(await send("hello"));
    kv.fails = () => true;
    await assert.rejects(line.journal.done(line.decrypted[0]!), StoreError);
    kv.fails = () => false;
    assert.equal((await (await boot(kv)).journal.leftovers()).decrypted.length, 1);
  }));

Deno.test("a connection that has ended leaves nothing behind a log-out, however slow its receivers and its store are", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    for (const text of ["crossed off", "in doubt"]) await line.receive(await send(text));
    const [first, second] = line.decrypted;
    const flushed = Promise.withResolvers<void>();
    const { commit } = kv;
    kv.commit = async (...given: Parameters<typeof commit>) => {
      await flushed.promise;
      return await commit.apply(kv, given);
    };
    const done = line.journal.done(first!);
    let isClosed = false;
    const closed = line.auth.close().then(() => isClosed = true);
    await settle();
    assert.equal(isClosed, false, "a row is being written");
    flushed.resolve();
    await Promise.all([done, closed]);
    await forgetLine(kv, lineId);

    const received = new Change();
    line.journal.settle(received, second!, { message: plainIncoming(), before: null });
    assert.deepEqual(received.mutations, [], "its receiver was slower than the log-out");
    await assert.rejects(line.journal.done(second!), StoreError);
    assert.deepEqual(await Array.fromAsync(kv.list({ prefix: networkKeys.waLine(lineId) })), []);
  }));

Deno.test("a message that does not decrypt is remembered until it is reported, and does not block the next", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    await line.receive(await send("before"));
    const broken = await send("garbled");
    const [enc] = broken.content as BinaryNode[];
    (enc!.content as Uint8Array)[20]! ^= 0xff;
    await assert.rejects(line.receive(broken));
    assert.equal(line.undecrypted[0]?.attrs.id, "M2");
    assert.equal(await line.receive(await send("after")), "after");
    const { journal } = await boot(kv);
    const { undecrypted } = await journal.leftovers();
    assert.deepEqual(undecrypted.map(({ attrs }) => attrs.id), ["M2"]);
    await journal.doneUndecrypted(undecrypted[0]!);
    assert.deepEqual((await (await boot(kv)).journal.leftovers()).undecrypted, []);
  }));

Deno.test("group messages are kept with their sender key's ratchet, and replayed from the journal", () =>
  withLine(async (kv) => {
    const friend = signalPeer(FRIEND);
    const data = (text: string) => encodeWAMessage(proto.Message.fromObject({ conversation: text }));
    const first = await friend.repository.encryptGroupMessage({ group: GROUP, meId: FRIEND, data: data("to all") });
    const line = await boot(kv);
    const item = { groupId: GROUP, axolotlSenderKeyDistributionMessage: first.senderKeyDistributionMessage };
    await line.repository.processSenderKeyDistributionMessage({ authorJid: FRIEND, item });
    const node = stanza("G1", { type: "skmsg", ciphertext: first.ciphertext });
    assert.equal(await line.receive(node), "to all");
    const commit = kv.commits.find(writesJournal);
    assert.ok(commit?.mutations.some(({ key }) => key.includes("sender-key")));
    assert.equal(await (await boot(kv)).receive(again(node)), "to all");
  }));

Deno.test("a sender key is learned in the commit of the message that brings it: the connection may end right after", () =>
  withLine(async (kv, _send, { repository }) => {
    const toGroup = (id: string, part: Parameters<typeof stanza>[1]): BinaryNode => {
      const node = stanza(id, part);
      return { ...node, attrs: { ...node.attrs, from: GROUP, participant: FRIEND } };
    };
    const data = (message: proto.IMessage) => encodeWAMessage(proto.Message.fromObject(message));
    const words = await repository.encryptGroupMessage({
      group: GROUP,
      meId: FRIEND,
      data: data({ conversation: "all" }),
    });
    const item = { groupId: GROUP, axolotlSenderKeyDistributionMessage: words.senderKeyDistributionMessage };
    const key = await repository.encryptMessage({ jid: LINE, data: data({ senderKeyDistributionMessage: item }) });

    const line = await boot(kv);
    await line.receive(toGroup("K1", key));
    assert.ok(kv.commits.find(writesJournal)?.mutations.some(({ key }) => key.includes("sender-key")));
    await line.auth.close();
    await line.repository.processSenderKeyDistributionMessage({ authorJid: FRIEND, item });
    const next = await boot(kv);
    assert.equal(await next.receive(toGroup("G1", { type: "skmsg", ciphertext: words.ciphertext })), "all");
  }));

for (const [whose, groupId] of [["a group", GROUP], ["no group that could be", "1".repeat(3_000)]]) {
  Deno.test(`a sender key for ${whose} that comes in a chat of two is not kept, and what came with it is`, () =>
    withLine(async (kv, _send, { repository }) => {
      const data = encodeWAMessage({ conversation: "all" });
      const made = await repository.encryptGroupMessage({ group: GROUP, meId: FRIEND, data });
      const item = { groupId, axolotlSenderKeyDistributionMessage: made.senderKeyDistributionMessage };
      const words = encodeWAMessage({ conversation: "hello", senderKeyDistributionMessage: item });
      const line = await boot(kv);
      assert.equal(
        await line.receive(stanza("K1", await repository.encryptMessage({ jid: LINE, data: words }))),
        "hello",
      );
      await line.repository.processSenderKeyDistributionMessage({ authorJid: FRIEND, item });
      assert.deepEqual(await Array.fromAsync(kv.list({ prefix: networkKeys.waKeysOf(lineId, "sender-key") })), []);
      assert.equal(line.undecrypted.length, 0);
    }));
}

Deno.test("a message that the network withholds is remembered like one that does not decrypt", () =>
  withLine(async (kv) => {
    const line = await boot(kv);
    const content = [{ tag: "unavailable", attrs: { type: "view_once" } }];
    const node = { tag: "message", attrs: { id: "V1", from: FRIEND, t: "1700000000" }, content };
    kv.fails = () => true;
    await line.decryption.watch(node);
    assert.equal(line.broken.length, 1, "a store that refuses ends the connection, before the network hears anything");
    kv.fails = () => false;
    await line.decryption.watch(node);
    assert.deepEqual(line.undecrypted.map(({ attrs }) => attrs.id), ["V1"]);
    await line.auth.close();
    const { undecrypted } = await (await boot(kv)).journal.leftovers();
    assert.deepEqual(undecrypted.map(({ attrs }) => attrs.id), ["V1"]);
  }));

for (const type of ["msmsg", "frskmsg", "none"]) {
  Deno.test(`a message in the cipher ${type}, which the library cannot read, is remembered too`, () =>
    withLine(async (kv) => {
      const line = await boot(kv);
      const content = [{ tag: "enc", attrs: { v: "2", type }, content: new Uint8Array(40) }];
      const attrs = { id: "V1", from: GROUP, participant: FRIEND, t: "1700000000" };
      await line.decryption.watch({ tag: "message", attrs, content });
      assert.deepEqual(line.undecrypted.map(({ attrs }) => attrs.id), ["V1"]);
    }));
}

Deno.test("status posts and channels are not kept", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    const node = await send("my day");
    node.attrs = { ...node.attrs, from: "status@broadcast", participant: FRIEND };
    assert.equal(await line.receive(node), "my day");
    assert.deepEqual(kv.commits.filter(writesJournal), []);
  }));

Deno.test("the journal is sealed at rest", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    await line.receive(await send("a very private sentence"));
    for await (const row of kv.list<Uint8Array>({ prefix: networkKeys.waKeysOf(lineId, "journal") })) {
      assert.equal(Buffer.from(row.value).includes("private"), false);
      assert.equal(
        Buffer.from(row.value).includes(Buffer.from("a very private sentence").toString("base64").slice(4, 20)),
        false,
      );
    }
  }));

Deno.test("what was handed over is remembered for 30 days, and then swept", () =>
  withLine(async (kv, send) => {
    const line = await boot(kv);
    await line.receive(await send("hello"));
    await line.journal.done(line.decrypted[0]!);
    const now = runtime.clock.now();
    const day = 24 * 60 * 60 * 1000;
    assert.equal(await sweepExpired(kv, now + 30 * day), 0);
    assert.equal(await sweepExpired(kv, now + 31 * day), 1);
    assert.equal(await sweepExpired(kv, now + 31 * day), 0);
  }));

Deno.test("an entry is counted and set aside on disk, where a report of the fault finds it", () =>
  withLine(async (kv, send) => {
    const { receive, decrypted } = await boot(kv);
    await receive(await send("poison"));
    const { journal } = await boot(kv);
    const [left] = (await journal.leftovers()).decrypted;
    await journal.count(left!, 1);
    assert.equal((await journal.leftovers()).decrypted[0]!.attempts, 1);
    await journal.doneAside(left!);
    assert.deepEqual((await journal.leftovers()).decrypted, []);
    const { value } = await kv.get(networkKeys.waAside(lineId, left!.part));
    assert.ok(Buffer.from(seal.open(value!)).includes(decrypted[0]!.part));
    assert.deepEqual(await journal.recall(left!), Uint8Array.of(1), "a second delivery is not read again");
  }));

Deno.test("the library reads nothing of what the owner's phone resends, or of what would hold it up", () =>
  withLine(async (kv, _send, friend) => {
    const { receive, decrypted } = await boot(kv);
    const peer = async (id: string, said: string | proto.IMessage) => {
      const made = stanza(id, await friend.encrypt(LINE, said));
      made.attrs.category = "peer";
      return await receive(made);
    };
    const result = { placeholderMessageResendResponse: { webMessageInfoBytes: Buffer.from([1]) } };
    const answer = { peerDataOperationResult: [result] };
    const protocolMessage = { peerDataOperationRequestResponseMessage: answer };
    assert.equal(await peer("A1", { conversation: "beside it", protocolMessage }), "");
    assert.equal(await peer("A2", "another"), "another", "other messages are the library's");
    assert.equal(decrypted.length, 2);
    const contacts = new Array(30_000).fill({});
    const many = await friend.encrypt(LINE, { conversation: "beside it", contactsArrayMessage: { contacts } });
    assert.equal(await receive(stanza("A3", many)), "", "nor what has too many members for it");
    const long = await friend.encrypt(LINE, "x".repeat(3 * 1024 ** 2));
    assert.equal(await receive(stanza("A4", long)), "", "nor what is longer than any app sends");
    assert.deepEqual([decrypted[3]!.isTooLong, decrypted[3]!.plaintext.length], [true, 1], "which is not kept either");
    const kept = proto.Message.decode(unpadRandomMax16(decrypted[0]!.plaintext));
    assert.equal(kept.protocolMessage?.peerDataOperationRequestResponseMessage?.peerDataOperationResult?.length, 1);
  }));

Deno.test("what is longer than any app sends is not decrypted: it is kept once, and the next message is read", () =>
  withLine(async (kv, send) => {
    const { receive, decrypted, repository } = await boot(kv);
    const longest = "x".repeat(1.24 * 1024 ** 2);
    assert.equal(await receive(await send(longest)), longest);
    const long = await send("x".repeat(1.26 * 1024 ** 2));
    assert.equal(await receive(long), "");
    const commit = kv.commits.filter(writesJournal).at(-1)!;
    assert.ok(!commit.mutations.some(({ key }) => key.includes("session")), "no step of the ratchet");
    assert.equal(await receive(again(long)), "");
    assert.equal(await receive(await send("after it")), "after it");
    assert.deepEqual(decrypted.map(({ attrs, isTooLong = false }) => [attrs.id, isTooLong]), [
      ["M1", false],
      ["M2", true],
      ["M3", false],
    ]);
    const unkept = await send("x".repeat(1.26 * 1024 ** 2));
    const [{ attrs, content }] = unkept.content as [BinaryNode];
    const status = { jid: FRIEND, type: attrs.type as "msg", ciphertext: content as Uint8Array };
    assert.deepEqual(await repository.decryptMessage(status), Uint8Array.of(1), "nor where nothing is kept");
  }));
