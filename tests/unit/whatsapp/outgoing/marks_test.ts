/** The token for reports, and what the library is given to read instead of the message. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type BinaryNode, proto } from "@whiskeysockets/baileys";
import { asLibraryReads, marksOf, reportingToken } from "../../../../src/whatsapp/baileys/outgoing/marks.ts";

const messageSecret = Uint8Array.from({ length: 32 }, (_, i) => i);
const messageContextInfo = { messageSecret };
const TEXT = proto.Message.fromObject({
  extendedTextMessage: { text: "Hello", contextInfo: { isForwarded: true, forwardingScore: 2, expiration: 86400 } },
  messageContextInfo,
});
const IMAGE = proto.Message.fromObject({
  imageMessage: {
    mimetype: "image/png",
    caption: "a caption",
    fileSha256: messageSecret,
    mediaKey: messageSecret,
    directPath: "/v/x",
    width: 3,
  },
  messageContextInfo,
});
const ID = "3EB0C8712CC1E53869085F";

async function token(content: proto.IMessage, ids: { me: string; to: string }): Promise<string> {
  const [node] = await reportingToken(content, { id: ID, ...ids });
  const [value] = node!.content as BinaryNode[];
  return Buffer.from(value!.content as Uint8Array).toString("hex");
}

/**
 * The order of the addresses is the own one, then the chat's: as whatsapp-rust (`stanza_id || sender_jid || remote_jid`),
 * zapo (`stanzaId + senderUserJid + remoteJid`) and whatsmeow have it in August 2026. whatsmeow of December 2025 had
 * them the other way round, so in its vectors they are exchanged. In a group, whatsapp-rust alone takes the group for
 * both.
 */
Deno.test("a token is that of whatsmeow", async () => {
  // whatsmeow of 2025-12-17, `getMessageReportingToken`, sender 178680451944640@lid to 99887766554433@lid.
  const ids = { me: "99887766554433@lid", to: "178680451944640@lid" };
  assert.equal(await token(TEXT, ids), "3b2357093d80602a472802c8aafd94b5");
  assert.equal(await token(IMAGE, ids), "c8e32e64a15cf54b65b515ae592c6821");
});

Deno.test("a reaction has no token, and the library adds none of its own", async () => {
  const reaction = { reactionMessage: { text: "x" }, messageContextInfo };
  assert.deepEqual(await reportingToken(reaction, { id: ID, me: "1@lid", to: "2@lid" }), []);
  assert.ok(asLibraryReads(TEXT).encEventResponseMessage);
});

Deno.test("what the library reads besides is not encoded", () => {
  for (const content of [TEXT, IMAGE]) {
    assert.deepEqual(proto.Message.encode(asLibraryReads(content)).finish(), proto.Message.encode(content).finish());
  }
});

Deno.test("a message is a poll only if it has one, also where its fields are left off and not null", () => {
  assert.equal(marksOf({ conversation: "x" }).attrs.type, "text");
  const poll = marksOf({ pollCreationMessageV3: { name: "?", options: [{ optionName: "a" }] } });
  assert.equal(poll.attrs.type, "poll");
  assert.deepEqual(poll.nodes, [{ tag: "meta", attrs: { polltype: "creation" } }]);
});
