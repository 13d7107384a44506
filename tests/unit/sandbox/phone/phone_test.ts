import assert from "node:assert/strict";
import { getBinaryNodeChild } from "@whiskeysockets/baileys";
import { SmallNetwork } from "./small_network.ts";

const GROUP = "120363000000000001@g.us";

Deno.test("two phones decrypt each other's messages", async () => {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001", "Ana"), network.phone("15550002")];
  const { id } = await ana.sendMessage({ to: ben.number, text: "hello 🙂" });
  await network.idle();
  await ben.sendMessage({ to: ana.number, text: "hi" });
  await network.idle();
  const [got] = ben.inbox();
  assert.equal(got?.id, id);
  assert.deepEqual([got.from, got.chat, got.fromMe, got.type, got.text, got.copies], [
    ana.jid,
    ana.jid,
    false,
    "conversation",
    "hello 🙂",
    1,
  ]);
  assert.equal(got.timestamp, network.runtime.clock.now());
  assert.equal(ana.inbox()[0]?.text, "hi");
});

Deno.test("a hundred messages both ways keep their order", async () => {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
  const texts = Array.from({ length: 100 }, (_, i) => `number ${i}`);
  for (const text of texts) {
    await Promise.all([ana.sendMessage({ to: ben.number, text }), ben.sendMessage({ to: ana.number, text })]);
  }
  await network.idle();
  assert.deepEqual(ana.inbox().map((item) => item.text), texts);
  assert.deepEqual(ben.inbox().map((item) => item.text), texts);
});

Deno.test("every message is answered with a delivery receipt, and with a read receipt on demand", async () => {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
  const { id } = await ana.sendMessage({ to: ben.number, text: "hello" });
  await network.idle();
  ben.read(id);
  const receipts = network.sent.filter(({ tag }) => tag === "receipt").map(({ attrs }) => attrs);
  assert.deepEqual(receipts[0], { id, to: ana.jid, from: ben.jid });
  const t = String(network.runtime.clock.now() / 1000);
  assert.deepEqual(receipts[1], { id, to: ana.jid, from: ben.jid, type: "read", t });
  assert.throws(() => ben.read("UNKNOWN"), { code: "not_found" });
});

Deno.test("a message that arrives twice is listed once, with its copies counted", async () => {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
  const arrived: Parameters<typeof ben.deliver>[0][] = [];
  const deliver = ben.deliver.bind(ben);
  ben.deliver = (stanza) => {
    arrived.push(stanza);
    deliver(stanza);
  };
  await ana.sendMessage({ to: ben.number, text: "once" });
  await network.idle();
  ben.deliver(arrived[0]!);
  await network.idle();
  assert.deepEqual(ben.inbox().map(({ text, copies }) => [text, copies]), [["once", 2]]);
  assert.equal(network.sent.filter(({ attrs }) => attrs.type === "retry").length, 0);
});

Deno.test("a phone that lost its sessions asks again and then reads the message", async () => {
  const network = new SmallNetwork();
  const ana = network.phone("15550001");
  const before = network.phone("15550002");
  await ana.sendMessage({ to: before.number, text: "to the old one" });
  await network.idle();
  await before.sendMessage({ to: ana.number, text: "so that the session is settled" });
  await network.idle();

  const ben = network.reinstall("15550002");
  const { id } = await ana.sendMessage({ to: ben.number, text: "to the new one" });
  await network.idle();
  const retry = network.sent.find(({ attrs }) => attrs.type === "retry");
  assert.equal(retry?.attrs.id, id);
  assert.ok(getBinaryNodeChild(retry, "keys"));
  assert.deepEqual(ben.inbox().map(({ id, text, copies }) => [id, text, copies]), [[id, "to the new one", 1]]);
});

Deno.test("a message that never decrypts is asked for five times, and the next one still arrives", async () => {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
  let poisoned = "";
  network.tamper = (stanza) => {
    if (stanza.tag !== "message") return stanza;
    poisoned ||= stanza.attrs.id ?? "";
    if (stanza.attrs.id !== poisoned) return stanza;
    const damaged = { tag: "enc", attrs: { v: "2", type: "msg" }, content: new Uint8Array(80) };
    return { ...stanza, attrs: { ...stanza.attrs, to: ben.jid }, content: [damaged] };
  };
  await ana.sendMessage({ to: ben.number, text: "never" });
  await network.idle();
  await ana.sendMessage({ to: ben.number, text: "after it" });
  await network.idle();
  assert.equal(network.sent.filter(({ tag, attrs }) => tag === "receipt" && attrs.type === "retry").length, 5);
  assert.deepEqual(ben.inbox().map((item) => item.text), ["after it"]);
});

Deno.test("a group message is encrypted once for all members, and its key is sent only once", async () => {
  const network = new SmallNetwork();
  const [ana, ben, cleo] = [network.phone("15550001"), network.phone("15550002"), network.phone("15550003")];
  network.group(GROUP, ana, ben, cleo);
  await ana.sendMessage({ to: GROUP, text: "one" });
  await ana.sendMessage({ to: GROUP, text: "two" });
  await network.idle();
  await ben.sendMessage({ to: GROUP, text: "three" });
  await network.idle();
  const messages = network.sent.filter(({ tag }) => tag === "message");
  assert.deepEqual(messages.map((stanza) => !!getBinaryNodeChild(stanza, "participants")), [true, false, true]);
  assert.deepEqual(cleo.inbox().map(({ chat, from, text }) => [chat, from, text]), [
    [GROUP, ana.jid, "one"],
    [GROUP, ana.jid, "two"],
    [GROUP, ben.jid, "three"],
  ]);
  assert.deepEqual(ana.inbox().map((item) => item.text), ["three"]);
});

Deno.test("after a member has left, the next message uses a new sender key", async () => {
  const network = new SmallNetwork();
  const [ana, ben, cleo] = [network.phone("15550001"), network.phone("15550002"), network.phone("15550003")];
  network.group(GROUP, ana, ben, cleo);
  await ana.sendMessage({ to: GROUP, text: "with Cleo" });
  network.group(GROUP, ana, ben);
  await ana.sendMessage({ to: GROUP, text: "without her" });
  await network.idle();
  const [, second] = network.sent.filter(({ tag }) => tag === "message");
  assert.ok(getBinaryNodeChild(second, "participants"));
  assert.deepEqual(ben.inbox().map((item) => item.text), ["with Cleo", "without her"]);
});

Deno.test("a member who lost the group's keys gets the message again, with them", async () => {
  const network = new SmallNetwork();
  const [ana, old] = [network.phone("15550001"), network.phone("15550002")];
  network.group(GROUP, ana, old);
  await ana.sendMessage({ to: GROUP, text: "one" });
  await network.idle();
  const ben = network.reinstall("15550002");
  await ana.sendMessage({ to: GROUP, text: "two" });
  await network.idle();
  await ana.sendMessage({ to: GROUP, text: "three" });
  await network.idle();
  assert.deepEqual(ben.inbox().map((item) => item.text), ["two", "three"]);
});

Deno.test("a phone that hides its number shows only its LID", async () => {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
  await ana.sendMessage({ to: ben.number, text: "who is it?", hideNumber: true });
  await network.idle();
  assert.deepEqual(ben.inbox().map(({ from, chat }) => [from, chat]), [[ana.lid, ana.lid]]);
  const message = network.sent.find(({ tag }) => tag === "message");
  assert.equal(message?.attrs.from, ana.lid);
});

Deno.test("a message sent from the LID is edited and deleted from the LID too", async () => {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
  network.group(GROUP, ana, ben);
  for (const to of [ben.number, GROUP]) {
    const { id } = await ana.sendMessage({ to, text: "who is it?", hideNumber: true });
    await ana.edit(id, { text: "guess", plain: false });
    await ana.revoke(id);
    await network.idle();
    const item = ben.inbox().find((item) => item.id === id);
    assert.deepEqual([item?.text, item?.revoked], ["guess", true]);
  }
  const messages = network.sent.filter(({ tag }) => tag === "message");
  assert.deepEqual(messages.map(({ attrs }) => attrs.from), Array(6).fill(ana.lid));
});

Deno.test("a phone that hid its number in a chat reacts and votes there from its LID, until it writes by number", async () => {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
  await ana.sendMessage({ to: ben.number, text: "who is it?", hideNumber: true });
  const poll = { name: "You are", options: [{ optionName: "Ana" }, { optionName: "Cleo" }], selectableOptionsCount: 1 };
  const message = { messageContextInfo: { messageSecret: "A".repeat(44) }, pollCreationMessageV3: poll };
  const { id } = await ben.sendMessage({ to: ana.lid, message });
  await network.idle();
  await ana.vote(id, ["Cleo"]);
  await ana.react(id, "🙂");
  await ana.sendMessage({ to: ben.number, text: "It is me" });
  await ana.react(id, "");
  const sent = network.sent.filter(({ tag, attrs }) => tag === "message" && attrs.to !== ana.lid);
  assert.deepEqual(sent.map(({ attrs }) => attrs.from), [ana.lid, ana.lid, ana.lid, ana.jid, ana.jid]);
});

Deno.test("an invalid recipient or message is refused, and nothing is sent", async () => {
  const network = new SmallNetwork();
  const ana = network.phone("15550001");
  const refused = { code: "validation_failed" };
  await assert.rejects(ana.sendMessage({ to: "nobody", text: "x" }), refused);
  await assert.rejects(ana.sendMessage({ to: "15559999", text: "x" }), refused);
  await assert.rejects(ana.sendMessage({ to: GROUP, text: "x" }), refused);
  await assert.rejects(ana.sendMessage({ to: ana.number, text: "" }), refused);
  await assert.rejects(ana.sendMessage({ to: ana.number, message: { nonsense: {} } }), refused);
  assert.deepEqual(network.sent, []);
});

Deno.test("a field that WhatsApp's messages do not have is refused and named, at any depth", async () => {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001"), network.phone("15550002")];
  const secret = "A".repeat(43) + "=";
  for (
    const [message, path] of [
      [{ conversation: "x", converstion: "y" }, "converstion"],
      [{ locationMessage: { degreesLatitude: 1, degresLongitude: 2 } }, "locationMessage.degresLongitude"],
      [{ contactsArrayMessage: { contacts: [{}, { vcrd: "x" }] } }, "contactsArrayMessage.contacts.1.vcrd"],
      [{ protocolMessage: { key: { id: "x" }, type: "REVOK" } }, "protocolMessage.type"],
    ] as const
  ) {
    const sent = ana.sendMessage({ to: ben.number, message });
    await assert.rejects(sent, { code: "validation_failed", message: new RegExp(`^message\\.${path}: `) });
  }
  for (
    const message of [
      { messageContextInfo: { messageSecret: secret }, conversation: "bytes", chat: null },
      { documentMessage: { mediaKey: [1, 2, 3], fileLength: { low: 5, high: 0, unsigned: true } } },
      { documentMessage: { mediaKey: "AQID", fileLength: "5", mediaKeyTimestamp: 5 } },
      { extendedTextMessage: { text: "", contextInfo: { mentionedJid: [], isForwarded: false } } },
      { protocolMessage: { key: { id: "x" }, type: "REVOKE" } },
    ]
  ) {
    await ana.sendMessage({ to: ben.number, message });
  }
});

Deno.test("libsignal prints nothing, and no text is logged", async () => {
  const printed: unknown[][] = [];
  const levels = ["log", "info", "warn", "error"] as const;
  const originals = levels.map((level) => console[level]);
  for (const level of levels) console[level] = (...args: unknown[]) => void printed.push(args);
  try {
    const network = new SmallNetwork();
    const ana = network.phone("15550001");
    network.phone("15550002");
    await ana.sendMessage({ to: "15550002", text: "a secret text" });
    await network.idle();
    const ben = network.reinstall("15550002");
    await ben.sendMessage({ to: ana.number, text: "closes the old session" });
    await network.idle();
    await ana.sendMessage({ to: ben.number, text: "a secret text" });
    await network.idle();
    assert.equal(ben.inbox().length, 1);
    assert.doesNotMatch(JSON.stringify(network.runtime.lines), /secret text/);
  } finally {
    levels.forEach((level, i) => console[level] = originals[i]!);
  }
  assert.deepEqual(printed, []);
});
