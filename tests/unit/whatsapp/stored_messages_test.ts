/** What is kept of a message that came in can be quoted and sent on: what it says, and nothing else that came with it. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { proto } from "@whiskeysockets/baileys";
import { Change } from "../../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";
import {
  changeOriginal,
  findReceived,
  findSealed,
  findSent,
  keepOriginal,
  keepSent,
  recall,
} from "../../../src/whatsapp/baileys/stored_messages.ts";
import { forwarded } from "../../../src/whatsapp/baileys/outgoing/context_info.ts";
import type { Incoming } from "../../../src/whatsapp/incoming.ts";
import { plainIncoming } from "../../support/incoming.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { openDenoKv } from "../../../src/store/deno_kv/deno_kv.ts";
import { networkKeys, sweepExpired } from "../../../src/whatsapp/baileys/rows.ts";

Deno.test("a message that brought its sender's key for a group is sent on without the key", async () => {
  const kv = new MemoryKv();
  const runtime = testRuntime();
  const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
  const senderKey = { groupId: "1-2@g.us", axolotlSenderKeyDistributionMessage: Buffer.alloc(60, 7) };
  const location = { degreesLatitude: 1, degreesLongitude: 2 };
  const message = {
    senderKeyDistributionMessage: senderKey,
    fastRatchetKeySenderKeyDistributionMessage: senderKey,
    locationMessage: location,
  };
  const plaintext = new Uint8Array([...proto.Message.encode(message).finish(), 1]);
  const change = new Change();
  const kept = { seal, lineId: "ses_1", plaintext, now: runtime.clock.now() };
  keepOriginal(change, plainIncoming({ networkId: "A1", type: "locationMessage" }), kept);
  await kv.commit(change);
  const original = (await findReceived({ kv, seal, lineId: "ses_1" }, "A1"))!.message;
  assert.deepEqual(Object.keys(original), ["locationMessage"]);
  const words = { text: "a name, which is no text", caption: null };
  assert.deepEqual(forwarded(original, words).locationMessage, {
    ...location,
    contextInfo: { isForwarded: true, forwardingScore: 1 },
  });
});

Deno.test("a message that was edited is sent on with the words that it has now", () => {
  const text = { text: "now", caption: null };
  assert.equal(forwarded({ conversation: "before" }, text).extendedTextMessage?.text, "now");
  assert.equal(forwarded({ extendedTextMessage: { text: "before" } }, text).extendedTextMessage?.text, "now");
  const image = { imageMessage: { url: "https://x", caption: "before" } };
  assert.equal(forwarded(image, { text: null, caption: "now" }).imageMessage?.caption, "now");
});

Deno.test("a view-once message is stored, to be quoted, but can't be forwarded", async () => {
  const kv = new MemoryKv();
  const runtime = testRuntime();
  const line = { kv, seal: makeSeal(sealKey("a secret of the tests"), runtime.random), lineId: "ses_1" };
  const change = new Change();
  for (const [networkId, viewOnce] of [["ONCE", true], ["OFTEN", false]] as const) {
    const image = { imageMessage: { url: "https://x", ...(viewOnce ? { viewOnce } : {}) } };
    const plaintext = new Uint8Array([...proto.Message.encode(image).finish(), 1]);
    const incoming = plainIncoming({ networkId, type: "imageMessage", viewOnce });
    keepOriginal(change, incoming, { ...line, plaintext, now: runtime.clock.now() });
  }
  await kv.commit(change);
  assert.equal((await recall(line, "OFTEN"))?.kind, "image");
  assert.equal((await recall(line, "ONCE"))?.kind, null);
  assert.equal((await findReceived(line, "ONCE"))?.message.imageMessage?.url, "https://x");
});

const KINDS: Record<string, proto.IMessage> = {
  conversation: { conversation: "hi" },
  imageMessage: { imageMessage: { caption: "hi" } },
  unknown: { orderMessage: { orderId: "1", message: "hi" } },
  pollCreationMessage: { pollCreationMessage: { name: "hi" } },
};

Deno.test("a received message of any kind can be referred to for 30 days", async () => {
  const kv = await openDenoKv(":memory:", { runtime: testRuntime() });
  try {
    const line = { kv, seal: makeSeal(sealKey("a secret of the tests"), testRuntime().random), lineId: "ses_1" };
    const now = testRuntime().clock.now();
    for (const [type, message] of Object.entries(KINDS)) {
      const change = new Change();
      const plaintext = new Uint8Array([...proto.Message.encode(message).finish(), 1]);
      const incoming = plainIncoming({ networkId: type, type: type as Incoming["type"], text: "hi" });
      keepOriginal(change, incoming, { ...line, plaintext, now });
      await kv.commit(change);
    }
    const left = async (days: number) => {
      await sweepExpired(kv, now + days * DAY_MS);
      const found = await Promise.all(Object.keys(KINDS).map((type) => recall(line, type)));
      return Object.keys(KINDS).filter((_, i) => found[i] !== null);
    };
    assert.deepEqual(await left(30), Object.keys(KINDS));
    assert.deepEqual(await left(31), ["pollCreationMessage"], "votes come later");
  } finally {
    kv.close();
  }
});

const EDITED: [what: string, message: proto.IMessage, read: (message: proto.IMessage) => unknown][] = [
  ["a text", { conversation: "before" }, ({ conversation }) => conversation],
  ["a link", { extendedTextMessage: { text: "before" } }, (m) => m.extendedTextMessage?.text],
  ["a caption", { imageMessage: { caption: "before" } }, (m) => m.imageMessage?.caption],
  ["a file that had none", { videoMessage: { seconds: 1 } }, (m) => m.videoMessage?.caption],
  [
    "a document in an envelope",
    { documentWithCaptionMessage: { message: { documentMessage: { caption: "before" } } } },
    (m) => m.documentWithCaptionMessage?.message?.documentMessage?.caption,
  ],
  [
    "a text that vanishes",
    { ephemeralMessage: { message: { extendedTextMessage: { text: "before" } } } },
    (m) => m.ephemeralMessage?.message?.extendedTextMessage?.text,
  ],
];

for (const [what, message, read] of EDITED) {
  Deno.test(`${what} that was edited is quoted as it reads now`, async () => {
    const kv = new MemoryKv();
    const runtime = testRuntime();
    const line = { kv, seal: makeSeal(sealKey("a secret of the tests"), runtime.random), lineId: "ses_1" };
    const change = new Change();
    const messageContextInfo = { messageSecret: Buffer.alloc(32, 7) };
    const plaintext = new Uint8Array([...proto.Message.encode({ ...message, messageContextInfo }).finish(), 1]);
    keepOriginal(change, plainIncoming({ networkId: "E" }), { ...line, plaintext, now: runtime.clock.now() });
    await kv.commit(change);
    const edit = new Change();
    const edited = await findSealed(line, "E");
    changeOriginal(edit, { kind: "edited", target: "E", text: "now" }, { ...line, edited });
    await kv.commit(edit);
    const found = await findReceived(line, "E");
    assert.deepEqual([read(found!.message), found!.text], ["now", "now"]);
    assert.equal(
      found!.message.messageContextInfo?.messageSecret?.length,
      32,
      "what is added to it can still be opened",
    );
    assert.equal((await recall(line, "E"))?.text, "now");
  });
}

// Sent messages are kept, sealed, for receivers that ask again, and swept when nobody will.

const DAY_MS = 24 * 60 * 60 * 1000;

Deno.test("a sent message is found by its network id, by another instance too, until it is swept", async () => {
  const runtime = testRuntime();
  const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
  const kv = await openDenoKv(":memory:", { runtime });
  try {
    const message = proto.Message.fromObject({ conversation: "a very private sentence" });
    const change = new Change();
    const now = runtime.clock.now();
    keepSent(change, { networkId: "3EB0", chat: "7@lid", message }, { seal, lineId: "ses_1", now });
    await kv.commit(change);
    const find = (networkId: string, lineId = "ses_1") => findSent({ kv, seal, lineId }, networkId);
    const found = await find("3EB0");
    assert.deepEqual([found?.chat, found?.message.conversation], ["7@lid", "a very private sentence"]);
    assert.equal(await find("3EB1"), null);
    assert.equal(await find("3EB0", "ses_2"), null);
    const { value } = await kv.get(networkKeys.waSent("ses_1", "3EB0"));
    assert.equal(Buffer.from(value!).includes("private"), false);
    assert.equal(await sweepExpired(kv, now + 14 * DAY_MS), 0);
    assert.equal(await sweepExpired(kv, now + 15 * DAY_MS), 1);
    assert.equal(await find("3EB0"), null);
  } finally {
    kv.close();
  }
});
