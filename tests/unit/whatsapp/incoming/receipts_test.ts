/** What a receipt stanza says of messages that the line sent, and that its ack waits until that is kept. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { BinaryNode } from "@whiskeysockets/baileys";
import PQueue from "p-queue";
import { StoreError } from "../../../../src/store/kv.ts";
import { ownReadingOf, receiptsOf, takeReceipts } from "../../../../src/whatsapp/baileys/incoming/receipts.ts";
import { settle, testRuntime } from "../../../support/runtime.ts";

const ME = { id: "5511900000001:3@s.whatsapp.net", lid: "900@lid" };
const NOW = 1_800_000_000_000;

function receipts(attrs: Record<string, string>, more: string[] = []) {
  const items = more.map((id) => ({ tag: "item", attrs: { id } }));
  const content = more.length ? [{ tag: "list", attrs: {}, content: items }] : undefined;
  return receiptsOf({ tag: "receipt", attrs: { id: "A", t: "1700000000", ...attrs }, content }, ME, NOW);
}

Deno.test("a receipt without a type says delivered", () => {
  assert.deepEqual(receipts({ from: "552:4@s.whatsapp.net" }), [
    { networkId: "A", chat: "552@s.whatsapp.net", participant: null, status: "delivered", at: 1_700_000_000_000 },
  ]);
});

Deno.test("read, played and background receipts say what they mean", () => {
  for (const [type, status] of [["read", "read"], ["played", "read"], ["inactive", "delivered"]] as const) {
    assert.equal(receipts({ from: "552@s.whatsapp.net", type })[0]?.status, status);
  }
});

Deno.test("a type that is no word of receipts says nothing, whatever else bears its name", () => {
  for (const type of ["constructor", "toString", "__proto__"]) {
    assert.deepEqual(receipts({ from: "552@s.whatsapp.net", type }), []);
  }
});

Deno.test("one receipt may be about many messages", () => {
  const all = receipts({ from: "552@s.whatsapp.net", type: "read" }, ["B", "C"]);
  assert.deepEqual(all.map(({ networkId }) => networkId), ["A", "B", "C"]);
});

Deno.test("an id that is longer than any message's takes no other receipt with it", () => {
  const all = receipts({ from: "552@s.whatsapp.net", type: "read" }, ["x".repeat(3_000), "C"]);
  assert.deepEqual(all.map(({ networkId }) => networkId), ["A", "C"]);
});

Deno.test("a receipt whose time is none is of now", () => {
  for (const t of ["", "soon", "-1", "1e300", "9".repeat(20)]) {
    assert.equal(receipts({ from: "552@s.whatsapp.net", t })[0]?.at, NOW, t);
  }
});

Deno.test("in a group the receipt names its participant", () => {
  const [receipt] = receipts({ from: "1@g.us", participant: "222:1@lid", type: "read" });
  assert.equal(receipt?.chat, "1@g.us");
  assert.equal(receipt?.participant, "222@lid");
});

/** What the network sends when many members received or read: who is in the content, not in the attributes. */
function grouped(from: string, users: Record<string, string>[], key: Record<string, string> = { key: "OURS" }) {
  const content = users.map((attrs) => ({ tag: "user", attrs }));
  const attrs = { id: "STANZA", from, type: "read", t: "1700000000" };
  return receiptsOf({ tag: "receipt", attrs, content: [{ tag: "participants", attrs: key, content }] }, ME, NOW);
}

Deno.test("a receipt of many members names the message and each of them with its time", () => {
  const read = { networkId: "OURS", chat: "1@g.us", status: "read" };
  assert.deepEqual(grouped("1@g.us", [{ jid: "222:1@lid", t: "1700000001" }, { jid: "333@lid" }]), [
    { ...read, participant: "222@lid", at: 1_700_000_001_000 },
    { ...read, participant: "333@lid", at: 1_700_000_000_000 },
  ]);
});

Deno.test("a receipt of many leaves out the owner's phone, and whoever it does not name", () => {
  const receipts = grouped("1@g.us", [{ jid: "900@lid" }, { t: "1700000001" }, { jid: "333@lid" }]);
  assert.deepEqual(receipts.map(({ participant }) => participant), ["333@lid"]);
});

Deno.test("a receipt of many that names no message says nothing", () => {
  assert.deepEqual(grouped("1@g.us", [{ jid: "333@lid" }], {}), []);
});

Deno.test("those who got a broadcast are told apart from its list", () => {
  const [receipt] = grouped("77@broadcast", [{ jid: "552:3@s.whatsapp.net" }]);
  assert.deepEqual([receipt?.chat, receipt?.participant], ["77@broadcast", "552@s.whatsapp.net"]);
});

Deno.test("a receipt for a status post says for each person what it means", () => {
  const users = [
    { jid: "222@lid", t: "1700000001", type: "delivery" },
    { jid: "222@lid", t: "1700000002", type: "read" },
    { jid: "333@lid", t: "1700000003", type: "unheard-of" },
  ];
  const content = users.map((attrs) => ({ tag: "user", attrs }));
  const attrs = { class: "status", id: "STANZA", from: "status@broadcast", t: "1700000000" };
  const participants = { tag: "participants", attrs: { message_id: "OURS" }, content };
  const post = { networkId: "OURS", chat: "status@broadcast", participant: "222@lid" };
  assert.deepEqual(receiptsOf({ tag: "receipt", attrs, content: [participants] }, ME, NOW), [
    { ...post, status: "delivered", at: 1_700_000_001_000 },
    { ...post, status: "read", at: 1_700_000_002_000 },
  ]);
});

Deno.test("a receipt without a time is of now", () => {
  assert.equal(receiptsOf({ tag: "receipt", attrs: { id: "A", from: "552@lid" } }, ME, NOW)[0]?.at, NOW);
});

const NOT_OURS: [title: string, attrs: Record<string, string>][] = [
  ["a retry receipt", { from: "552@s.whatsapp.net", type: "retry" }],
  ["the owner's phone reading somewhere", {
    from: "5511900000001@s.whatsapp.net",
    type: "read-self",
    recipient: "552@s.whatsapp.net",
  }],
  ["the owner's phone getting its copy", { from: "5511900000001@s.whatsapp.net" }],
  ["the owner's phone in a group, by @lid", { from: "1@g.us", participant: "900@lid" }],
  ["a copy on another device", { from: "552@s.whatsapp.net", type: "sender" }],
  ["a group that does not say who", { from: "1@g.us", type: "read" }],
  ["a broadcast that does not say who", { from: "77@broadcast", type: "read" }],
  ["a failed upload", { from: "552@s.whatsapp.net", type: "server-error" }],
];

for (const [title, attrs] of NOT_OURS) {
  Deno.test(`${title} says nothing of what the line sent`, () => assert.deepEqual(receipts(attrs), []));
}

/** A socket whose library acknowledges a receipt when it has the lock, and a receiver that does as it is told. */
function scene(receive: () => Promise<void>, content?: BinaryNode[]) {
  const runtime = testRuntime();
  const seen: string[] = [];
  const ws = new EventEmitter();
  const turns = new PQueue({ concurrency: 1 });
  const receiptMutex = { mutex: <T>(work: () => Promise<T> | T) => turns.add(async () => await work()) };
  ws.on("CB:receipt", () => void receiptMutex.mutex(() => void seen.push("ack")));
  takeReceipts({
    socket: { ws, receiptMutex } as unknown as Parameters<typeof takeReceipts>[0]["socket"],
    creds: { me: { id: ME.id, lid: ME.lid } } as Parameters<typeof takeReceipts>[0]["creds"],
    receive,
    readByOwner: () => Promise.resolve(),
    isOver: () => false,
    broken: () => void seen.push("cut"),
    runtime,
  });
  ws.emit("CB:receipt", { tag: "receipt", attrs: { id: "A", from: "552@s.whatsapp.net" }, content });
  return { runtime, seen };
}

Deno.test("of a receipt for more messages than anybody reads at once, the first are kept, and it is acknowledged", async () => {
  const items = Array.from({ length: 50_000 }, (_, i) => ({ tag: "item", attrs: { id: `M${i}` } }));
  const content = [items.slice(0, 1_500), items].map((content) => ({ tag: "list", attrs: {}, content }));
  let kept = 0;
  const { seen } = scene(() => Promise.resolve(void kept++), content);
  await settle();
  assert.equal(kept, 1 + 1_500, "the id of the stanza, and its first list");
  assert.deepEqual(seen, ["ack"]);
  assert.deepEqual(content.map((list) => list.content.length), [1_500, 548], "nor has the library more");
});

Deno.test("a receipt is acknowledged when it is kept", async () => {
  const kept = Promise.withResolvers<void>();
  const { seen } = scene(() => kept.promise);
  await settle();
  assert.deepEqual(seen, []);
  kept.resolve();
  await settle();
  assert.deepEqual(seen, ["ack"]);
});

Deno.test("a receipt that the store does not take for ten seconds cuts the connection before it is acknowledged", async () => {
  const { runtime, seen } = scene(() => new Promise(() => {}));
  await runtime.clock.advance(9_999);
  assert.deepEqual(seen, []);
  await runtime.clock.advance(1);
  assert.deepEqual(seen, ["cut", "ack"]);
});

Deno.test("so does one that is given up while the store is away", async () => {
  const { seen } = scene(() => Promise.reject(new StoreError("unavailable", "the store is away")));
  await settle();
  assert.deepEqual(seen, ["cut", "ack"]);
});

Deno.test("a receipt that fails by itself is acknowledged: it would fail again", async () => {
  const { seen } = scene(() => Promise.reject(new Error("no sense in it")));
  await settle();
  assert.deepEqual(seen, ["ack"]);
});

Deno.test("what the owner reads on another device is told with its chat, in either form of address", () => {
  const read = (attrs: Record<string, string>) => {
    const list = { tag: "list", attrs: {}, content: [{ tag: "item", attrs: { id: "B" } }] };
    return ownReadingOf({ tag: "receipt", attrs: { id: "A", type: "read", ...attrs }, content: [list] }, ME);
  };
  const one = { kind: "read", id: null, networkIds: ["A", "B"] };
  const own = ME.id.replace(/:\d+/, "");
  for (const type of ["read", "read-self"]) {
    assert.deepEqual(read({ from: own, recipient: "552@lid", type }), { ...one, chat: "552@lid" });
    assert.deepEqual(read({ from: "1@g.us", participant: own, type }), { ...one, chat: "1@g.us" });
  }
  assert.equal(read({ from: "552@lid" }), null, "the other side read it");
  assert.equal(read({ from: "1@g.us", participant: "552@lid" }), null);
  assert.equal(read({ from: own, recipient: "552@lid", type: "sender" }), null);
  assert.equal(read({ from: own }), null, "no chat is named");
});
