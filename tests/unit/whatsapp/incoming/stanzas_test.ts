/** What has an id that no app makes is acknowledged by that id, and seen by nobody: else it would come for ever. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { Buffer } from "node:buffer";
import { deflateSync } from "node:zlib";
import {
  aesEncryptGCM,
  type BinaryNode,
  Curve,
  decodeBinaryNode,
  decryptMessageNode,
  encodeBinaryNode,
  encodeWAMessage,
  hkdf,
  initAuthCreds,
  makeNoiseHandler,
  NOISE_WA_HEADER,
} from "@whiskeysockets/baileys";
import {
  correctMessage,
  serializeFrames,
  takeUnknownStanzas,
} from "../../../../src/whatsapp/baileys/incoming/stanzas.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { quiet } from "../../../support/signal_peer.ts";

/** A socket whose library listens for stanzas; `sent` are the stanzas that the network reads. */
function listening() {
  const ws = new EventEmitter();
  const seen: string[] = [];
  const sent: Promise<BinaryNode>[] = [];
  for (const tag of ["message", "receipt", "call"]) {
    ws.on(`CB:${tag}`, ({ attrs }: BinaryNode) => void seen.push(attrs.id!));
  }
  const socket = {
    ws,
    sendNode: (node: BinaryNode) => Promise.resolve(void sent.push(Promise.resolve(node))),
    sendRawMessage: (bytes: Uint8Array) => Promise.resolve(void sent.push(decodeBinaryNode(bytes as never))),
  } as unknown as Parameters<typeof takeUnknownStanzas>[0]["socket"];
  const creds = { me: { id: "551:3@s.whatsapp.net" } } as Parameters<typeof takeUnknownStanzas>[0]["creds"];
  takeUnknownStanzas({ socket, creds, count: () => {}, log: testRuntime().log });
  return { ws, seen, sent };
}

for (const tag of ["message", "receipt", "call"]) {
  Deno.test(`a ${tag} that is named as an address is acknowledged by that name`, async () => {
    const { ws, seen, sent } = listening();
    const attrs = { from: "222@lid", type: "x" };
    for (const id of ["a:5@b", "3EB0A0"]) ws.emit(`CB:${tag}`, { tag, attrs: { ...attrs, id } });
    assert.deepEqual(seen, ["3EB0A0"]);
    const [ack, ...more] = await Promise.all(sent);
    assert.deepEqual([ack!.tag, ack!.attrs.id, ack!.attrs.class, ack!.attrs.to], ["ack", "a:5@b", tag, "222@lid"]);
    assert.deepEqual(more, []);
  });
}

// Frames reach the library's listeners in the order in which the socket received them.

/** The library's reader as its socket wires it, behind a server that encrypts for it. */
async function reader() {
  const noise = makeNoiseHandler({ keyPair: Curve.generateKeyPair(), NOISE_HEADER: NOISE_WA_HEADER, logger: quiet });
  await noise.finishInit();
  const ws = new EventEmitter();
  const read: string[] = [];
  ws.on("message", (data) => noise.decodeFrame(data, (node) => void read.push((node as BinaryNode).attrs.id!)));
  return { ws, read, frame: serverFrames() };
}

/** Encodes one frame after another, as a server does right after the handshake. */
function serverFrames() {
  const key = Buffer.from(hkdf(new Uint8Array(0), 64, { salt: Buffer.from("Noise_XX_25519_AESGCM_SHA256\0\0\0\0") }));
  let count = 0;
  return (id: string, encode: (node: Buffer) => Buffer): Buffer => {
    const node = encodeBinaryNode({ tag: "message", attrs: { id }, content: Buffer.alloc(4_000, 7) });
    const nonce = Buffer.alloc(12);
    nonce.writeUInt32BE(count++, 8);
    const sealed = aesEncryptGCM(encode(Buffer.from(node)), key.subarray(32), nonce, new Uint8Array(0));
    return Buffer.concat([Buffer.of(sealed.length >> 16, (sealed.length >> 8) & 255, sealed.length & 255), sealed]);
  };
}

const PLAIN = (node: Buffer) => node;
const DEFLATED = (node: Buffer) => Buffer.concat([Buffer.of(2), deflateSync(node.subarray(1))]);
const UNREADABLE = () => Buffer.of(2, 0, 0);

async function untilRead(read: string[], count: number): Promise<void> {
  for (let turn = 0; read.length < count && turn < 1_000; turn++) await new Promise(setImmediate);
}

Deno.test("a deflated frame is not overtaken by the plain one behind it", async () => {
  const { ws, read, frame } = await reader();
  serializeFrames(ws, (work) => work(), (error) => assert.fail(String(error)));
  ws.emit("message", frame("deflated", DEFLATED));
  ws.emit("message", frame("plain", PLAIN));
  await untilRead(read, 2);
  assert.deepEqual(read, ["deflated", "plain"]);
});

Deno.test("long frames that came together have a turn of the loop each, not the one that put them together", async () => {
  const ws = new EventEmitter();
  const seen: string[] = [];
  ws.on("message", () => void seen.push("frame"));
  serializeFrames(ws, (work) => work(), (error) => assert.fail(String(error)));
  for (let i = 0; i < 3; i++) ws.emit("message", new Uint8Array(1024 ** 2));
  for (let turn = 0; turn < 10; turn++) {
    await new Promise(setImmediate);
    seen.push("turn");
  }
  const turns = seen.join(" ").split("frame").slice(0, -1);
  assert.ok(turns.length === 3 && turns.every((between) => between.includes("turn")), seen.join(" "));
});

Deno.test("what cannot be read is reported, and the frame behind it is read", async () => {
  const { ws, read, frame } = await reader();
  const failures: unknown[] = [];
  serializeFrames(ws, (work) => work(), (error) => failures.push(error));
  ws.emit("message", frame("broken", UNREADABLE));
  ws.emit("message", frame("plain", PLAIN));
  await untilRead(read, 1);
  assert.deepEqual(read, ["plain"]);
  assert.equal(failures.length, 1);
});

for (const certificate of [new Uint8Array(0), Uint8Array.of(0xff, 0xff)]) {
  Deno.test(`a business's certificate of the bytes [${certificate}] loses no message`, async () => {
    const content: BinaryNode[] = [
      { tag: "verified_name", attrs: { v: "1" }, content: certificate },
      { tag: "enc", attrs: { v: "2", type: "msg" }, content: new Uint8Array(40) },
    ];
    const stanza = { tag: "message", attrs: { id: "3A", from: "222@lid", t: "1" }, content };
    const repository = {
      lidMapping: {},
      decryptMessage: () => Promise.resolve(encodeWAMessage({ conversation: "hello" })),
    } as unknown as Parameters<typeof decryptMessageNode>[3];
    correctMessage(stanza, initAuthCreds());
    const { fullMessage, decrypt } = decryptMessageNode(stanza, "1@s.whatsapp.net", "9@lid", repository, quiet);
    await decrypt();
    assert.equal(fullMessage.message?.conversation, "hello");
  });
}
