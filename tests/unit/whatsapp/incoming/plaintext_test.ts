import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { encodeWAMessage, proto } from "@whiskeysockets/baileys";
import protobuf from "protobufjs/minimal.js";
import { contentOf } from "../../../../src/whatsapp/baileys/incoming/content.ts";
import { messageIn } from "../../../../src/whatsapp/baileys/incoming/plaintext.ts";

const { Writer } = protobuf;

const POLL = { name: "When?", options: [{ optionName: "now" }], selectableOptionsCount: 1 };
/** `pollCreationMessageV6`, which the library's protobuf does not know. */
const V6 = Writer.create().uint32(119 << 3 | 2).bytes(proto.Message.PollCreationMessage.encode(POLL).finish()).finish();
const SECRET = proto.Message.encode({ messageContextInfo: { messageSecret: Buffer.alloc(32, 7) } }).finish();
const padded = (message: Uint8Array) => Buffer.concat([message, Buffer.of(1)]);
const inEnvelope = (field: number, inside: number, message: Uint8Array) =>
  Writer.create().uint32(field << 3 | 2).bytes(Writer.create().uint32(inside << 3 | 2).bytes(message).finish())
    .finish();

Deno.test("a poll of a newer version is read, in envelopes too, with what stands beside it", () => {
  const plain = Buffer.concat([V6, SECRET]);
  const messages = [
    plain,
    inEnvelope(40, 1, plain),
    inEnvelope(31, 2, plain),
    inEnvelope(31, 2, inEnvelope(40, 1, plain)),
  ];
  for (const message of messages) {
    const read = messageIn(padded(message));
    const content = contentOf(read.deviceSentMessage?.message ?? read);
    assert.deepEqual([content?.type, content?.text], ["pollCreationMessage", "When?"]);
  }
  assert.equal(messageIn(padded(plain)).messageContextInfo?.messageSecret?.length, 32);
});

Deno.test("any other message is what the library reads, also if it holds the same bytes", () => {
  const text = `\u00ba\u0007 ${Buffer.from([0xba, 0x07]).toString("latin1")}`;
  const message = { conversation: text, messageContextInfo: { messageSecret: Buffer.from([0xba, 0x07]) } };
  assert.deepEqual(messageIn(encodeWAMessage(message)).toJSON(), proto.Message.fromObject(message).toJSON());
});

Deno.test("what is malformed is refused", () => {
  assert.throws(() => messageIn(padded(Buffer.concat([V6, Buffer.of(0xff, 0xff)]))));
});
