/** Replies, mentions, locations, polls, reactions, edits and deletions, as phones send and list them. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { type BinaryNode, decryptPollVote, getBinaryNodeChild, proto } from "@whiskeysockets/baileys";
import { encryptVote } from "../../../../src/sandbox/phone/compose.ts";
import { ADMIN_REVOKE } from "../../../../src/sandbox/world/stanza.ts";
import { seededRandom } from "../../../support/runtime.ts";
import { SmallNetwork } from "./small_network.ts";

const GROUP = "120363000000000001@g.us";

function scene() {
  const network = new SmallNetwork();
  const [ana, ben] = [network.phone("15550001", "Ana"), network.phone("15550002", "Ben")];
  const send = async (message: Record<string, unknown>) => {
    await ana.sendMessage({ to: ben.number, message });
    await network.idle();
    return ben.inbox().at(-1)!;
  };
  return { network, ana, ben, send };
}

Deno.test("a phone lists a message's quotation and mentions", async () => {
  const { send, ana } = scene();
  const contextInfo = {
    stanzaId: "3EB0AA",
    participant: ana.jid,
    quotedMessage: { conversation: "before" },
    mentionedJid: [ana.jid],
    isForwarded: true,
  };
  const item = await send({ extendedTextMessage: { text: "after @15550001", contextInfo } });
  assert.deepEqual(item.quoted, { id: "3EB0AA", text: "before" });
  assert.deepEqual([item.mentions, item.forwarded, item.text], [[ana.jid], true, "after @15550001"]);
  const plain = await send({ conversation: "plain" });
  assert.deepEqual([plain.quoted, plain.mentions, plain.forwarded, plain.viewOnce], [null, [], false, false]);
});

Deno.test("a phone lists locations, contacts and link previews", async () => {
  const { send } = scene();
  const place = await send({ locationMessage: { degreesLatitude: 52.5, degreesLongitude: 13.25, name: "Berlin" } });
  assert.deepEqual(place.location, { latitude: 52.5, longitude: 13.25, name: "Berlin", address: null });
  const one = await send({ contactMessage: { displayName: "Ben", vcard: "BEGIN:VCARD" } });
  assert.deepEqual(one.contacts, [{ name: "Ben", vcard: "BEGIN:VCARD" }]);
  const contacts = [{ displayName: "A", vcard: "a" }, { displayName: "B", vcard: "b" }];
  const two = await send({ contactsArrayMessage: { displayName: "2 contacts", contacts } });
  assert.deepEqual(two.contacts?.map(({ name }) => name), ["A", "B"]);
  const url = "https://example.org";
  const link = await send({ extendedTextMessage: { text: url, matchedText: url, title: "Example" } });
  assert.deepEqual(link.linkPreview, {
    url,
    title: "Example",
    description: null,
    hasPicture: false,
    pictureSha256: null,
  });
});

Deno.test("a vote reaches the poll's creator, and Baileys can decrypt it", async () => {
  const { network, ana, ben, send } = scene();
  const secret = Buffer.alloc(32, 7);
  const poll = await send({
    messageContextInfo: { messageSecret: secret.toString("base64") },
    pollCreationMessageV3: {
      name: "Lunch?",
      options: [{ optionName: "Soup" }, { optionName: "Salad" }],
      selectableOptionsCount: 1,
    },
  });
  assert.deepEqual(poll.poll, { question: "Lunch?", options: ["Soup", "Salad"], multiple: false });
  await assert.rejects(ben.vote(poll.id, ["Pizza"]), { code: "validation_failed" });
  await assert.rejects(ben.vote(poll.id, ["Soup", "Salad"]), { code: "validation_failed" });
  await assert.rejects(ben.vote("UNKNOWN", ["Soup"]), { code: "not_found" });
  await ben.vote(poll.id, ["Salad"]);
  await network.idle();
  assert.equal(ana.inbox().at(-1)?.type, "pollUpdateMessage");
  const ballot = { pollId: poll.id, secret, creator: ana.jid, voter: ben.jid };
  const vote = encryptVote({ ...ballot, options: ["Salad"] }, seededRandom(1));
  const read = decryptPollVote(vote as proto.Message.PollEncValue, {
    pollCreatorJid: ana.jid,
    pollMsgId: poll.id,
    pollEncKey: secret,
    voterJid: ben.jid,
  });
  const chosen = read.selectedOptions.map((hash) => Buffer.from(hash).toString("hex"));
  assert.deepEqual(chosen, [createHash("sha256").update("Salad").digest("hex")]);
});

Deno.test("a reaction is an item of its own, and an empty one takes it back", async () => {
  const { network, ana, ben, send } = scene();
  const { id } = await send({ conversation: "hello" });
  await ben.react(id, "👍");
  await ben.react(id, "");
  await network.idle();
  assert.deepEqual(ana.inbox().map(({ type, reaction, chat }) => ({ type, reaction, chat })), [
    { type: "reaction", reaction: { id, emoji: "👍" }, chat: ben.jid },
    { type: "reaction", reaction: { id, emoji: "" }, chat: ben.jid },
  ]);
  const edits = network.sent.filter(({ tag }) => tag === "message").map(({ attrs }) => attrs.edit);
  assert.deepEqual(edits, [undefined, undefined, "7"], "as for a deletion");
  await assert.rejects(ben.react("UNKNOWN", "👍"), { code: "not_found" });
});

Deno.test("an edit and a deletion apply to their own chat, even if a message of another chat has the same id", async () => {
  const { network, ana, ben } = scene();
  network.group(GROUP, ana, ben);
  const { random } = network.runtime;
  const { bytes } = random;
  for (const chats of [[GROUP, ben.number], [ben.number, GROUP]] as const) {
    const taken = bytes(16);
    for (const to of chats) {
      random.bytes = (length) => length === 16 ? Uint8Array.from(taken) : bytes(length);
      await ana.sendMessage({ to, text: "first" });
    }
    random.bytes = bytes;
    const id = Buffer.from(taken).toString("hex").toUpperCase();
    // The phone knows the one that it sent last by this id.
    await ana.edit(id, { text: "second", plain: false });
    await ana.revoke(id);
    await network.idle();
    const items = ben.inbox().filter((item) => item.id === id);
    assert.deepEqual(items.map(({ text, revoked }) => [text, revoked]), [["first", false], ["second", true]]);
  }
});

Deno.test("only the author of a message can edit and delete it", async () => {
  const { network, ana, ben } = scene();
  network.group(GROUP, ana, ben);
  for (const to of [ben.number, GROUP]) {
    const { id } = await ana.sendMessage({ to, text: "first" });
    await ana.edit(id, { text: "second", plain: false });
    await network.idle();
    const [item] = ben.inbox().filter((one) => one.id === id);
    assert.deepEqual([item?.text, item?.edited, item?.revoked], ["second", true, false]);
    await ana.revoke(id);
    await network.idle();
    assert.equal(ben.inbox().find((one) => one.id === id)?.revoked, true);
    await ana.edit(id, { text: "too late", plain: false });
    await network.idle();
    assert.equal(ben.inbox().find((one) => one.id === id)?.text, "second");
    await assert.rejects(ben.edit(id, { text: "mine", plain: false }), { code: "not_found" });
  }
  assert.equal(ben.inbox().length, 2);
  const { id } = await ana.sendMessage({ to: ben.number, text: "keep" });
  const key = { remoteJid: ana.jid, fromMe: false, id };
  await ana.sendMessage({ to: ben.number, text: "x" });
  network.phone("15550003").sendMessage({ to: ben.number, message: { protocolMessage: { key, type: 0 } } });
  await network.idle();
  assert.equal(ben.inbox().find((one) => one.id === id)?.revoked, false);
});

Deno.test("an admin can delete other members' messages in a group; in a 1:1 chat nobody can", async () => {
  const { network, ana, ben } = scene();
  const cleo = network.phone("15550003");
  network.group(GROUP, ana, ben, cleo);
  const asAdmin = (stanza: BinaryNode) => ({ ...stanza, attrs: { ...stanza.attrs, edit: ADMIN_REVOKE } });
  network.tamper = (stanza) => stanza.tag === "message" && stanza.attrs.from === cleo.jid ? asAdmin(stanza) : stanza;
  for (const [to, revoked] of [[ben.number, false], [GROUP, true]] as const) {
    for (const [participant, isDone] of [[undefined, revoked], [ana.jid, revoked], [cleo.lid, false]] as const) {
      const { id } = await ana.sendMessage({ to, text: "keep" });
      const key = { remoteJid: to, fromMe: false, id, participant };
      await cleo.sendMessage({ to, message: { protocolMessage: { key, type: 0 } } });
      await network.idle();
      assert.equal(ben.inbox().find((item) => item.id === id)?.revoked, isDone, `${to} ${participant}`);
    }
  }
});

Deno.test("a stanza states the type of polls of every version, and of wrapped files", async () => {
  const { network, send } = scene();
  const poll = { name: "Lunch?", options: [{ optionName: "Soup" }], selectableOptionsCount: 1 };
  const imageMessage = { mimetype: "image/jpeg" };
  for (
    const [message, type, mediatype] of [
      [{ pollCreationMessage: poll }, "poll", undefined],
      [{ pollCreationMessageV3: poll }, "poll", undefined],
      [{ viewOnceMessageV2: { message: { imageMessage } } }, "media", "image"],
      [{ ephemeralMessage: { message: { conversation: "Hello" } } }, "text", undefined],
    ] as const
  ) {
    await send(message);
    const stanza = network.sent.findLast(({ tag }) => tag === "message")!;
    const to = getBinaryNodeChild(getBinaryNodeChild(stanza, "participants"), "to");
    const enc = getBinaryNodeChild(to, "enc");
    assert.deepEqual([stanza.attrs.type, enc?.attrs.mediatype], [type, mediatype]);
  }
});

Deno.test("a quotation shows the caption of a wrapped file and the question of every poll", async () => {
  const { send } = scene();
  const quoting = async (quotedMessage: Record<string, unknown>) => {
    const contextInfo = { stanzaId: "3EB0AA", quotedMessage };
    return (await send({ extendedTextMessage: { text: "reply", contextInfo } })).quoted?.text;
  };
  const documentMessage = { fileName: "a.pdf", caption: "The invoice" };
  assert.equal(await quoting({ documentWithCaptionMessage: { message: { documentMessage } } }), "The invoice");
  assert.equal(await quoting({ pollCreationMessageV2: { name: "Lunch?" } }), "Lunch?");
});

Deno.test("an edit without content does not count as a deletion", async () => {
  const { network, ana, ben, send } = scene();
  const { id } = await send({ conversation: "first" });
  const key = { remoteJid: ben.jid, fromMe: true, id };
  await ana.sendMessage({
    to: ben.number,
    message: { protocolMessage: { key, type: 14, editedMessage: { messageContextInfo: {} } } },
  });
  await network.idle();
  assert.equal(ben.inbox()[0]?.revoked, false);
});

Deno.test("typing is seen by the other side, and leaves no message", async () => {
  const { network, ana, ben } = scene();
  ana.setTyping(ben.number, "typing");
  ana.setTyping(ben.number, "recording");
  ana.setTyping(ben.number, "paused");
  await network.idle();
  assert.deepEqual(ben.chatStates().map(({ from, chat, state }) => [from, chat, state]), [
    [ana.jid, ana.jid, "typing"],
    [ana.jid, ana.jid, "recording"],
    [ana.jid, ana.jid, "paused"],
  ]);
  assert.deepEqual(ben.inbox(), []);
});
