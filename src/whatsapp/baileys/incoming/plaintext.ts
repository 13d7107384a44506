/** Decodes what a message's ciphertext held, with fields that are newer than the library's protobuf. */
import { Buffer } from "node:buffer";
import { proto, unpadRandomMax16 } from "@whiskeysockets/baileys";
import protobuf from "protobufjs/minimal.js";
import { bounded } from "./bounded.ts";

const { Writer } = protobuf;

/** The wire type of values with a length. */
const WITH_LENGTH = 2;
/** Tags (field number and wire type) of newer fields, and of the older field with the same content. */
const RENAMED = new Map([[tagOf(119), tagOf(111)]]); // pollCreationMessageV6 is a pollCreationMessageV5
/** Tags of envelopes, and of the message inside. */
const ENVELOPES = new Map([[tagOf(31), tagOf(2)], [tagOf(40), tagOf(1)]]); // deviceSentMessage, ephemeralMessage
const NEWER = [...RENAMED.keys()].map((tag) => Buffer.from(Writer.create().uint32(tag).finish()));

/** Throws if the plaintext is malformed; TooManyMembers beyond that bound. */
export function messageIn(plaintext: Uint8Array): proto.Message {
  const bytes = unpadRandomMax16(plaintext);
  return proto.Message.decode(bounded(NEWER.some((tag) => Buffer.from(bytes).includes(tag)) ? renamed(bytes) : bytes));
}

/** Rewrites the tags in a message, and in the messages inside of its envelopes. */
function renamed(message: Uint8Array): Uint8Array {
  return rewritten(message, (tag, value) => {
    const inside = ENVELOPES.get(tag);
    if (inside === undefined) return [RENAMED.get(tag) ?? tag, value];
    return [tag, rewritten(value, (tag, value) => [tag, tag === inside ? renamed(value) : value])];
  });
}

/** Rewrites the fields whose value has a length; the others stay as they are. */
function rewritten(
  bytes: Uint8Array,
  rewrite: (tag: number, value: Uint8Array) => [tag: number, value: Uint8Array],
): Uint8Array {
  const reader = bounded(bytes);
  const chunks: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const begin = reader.pos;
    const tag = reader.uint32();
    if ((tag & 7) === WITH_LENGTH) {
      const [newTag, value] = rewrite(tag, reader.bytes());
      chunks.push(Writer.create().uint32(newTag).bytes(value).finish());
    } else {
      reader.skipType(tag & 7);
      chunks.push(bytes.subarray(begin, reader.pos));
    }
  }
  return Buffer.concat(chunks);
}

/** The tag of a field whose value has a length. */
function tagOf(field: number): number {
  return field << 3 | WITH_LENGTH;
}
