import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Curve, makeNoiseHandler, NOISE_WA_HEADER, proto, WA_CERT_DETAILS } from "@whiskeysockets/baileys";
import { verifySignature } from "libsignal/src/curve.js";
import pino from "pino";
import { FrameReader } from "../../../../src/sandbox/server/companion_socket.ts";
import { createNoiseIdentity, createNoiseResponder, type NoiseIdentity } from "../../../../src/sandbox/server/noise.ts";

const NOW = Date.parse("2026-08-01T00:00:00Z");

/** By the Signal library itself, which takes keys with their type byte. */
const isSignedBy = (key: Uint8Array, message: Uint8Array, signature: Uint8Array) =>
  verifySignature(Buffer.concat([Uint8Array.of(5), key]), message, signature);

/** The client's half, by the library: an implementation that is not ours. */
function client(routingInfo?: Uint8Array) {
  const ephemeral = Curve.generateKeyPair();
  const noise = makeNoiseHandler({
    keyPair: ephemeral,
    NOISE_HEADER: NOISE_WA_HEADER,
    logger: pino({ level: "silent" }) as unknown as Parameters<typeof makeNoiseHandler>[0]["logger"],
    routingInfo: routingInfo && Buffer.from(routingInfo),
  });
  const hello = proto.HandshakeMessage.encode({ clientHello: { ephemeral: ephemeral.public } }).finish();
  return { noise, hello: noise.encodeFrame(hello) };
}

/** A handshake up to transport; answers what the server learned of the client. */
async function shakeHands(identity: NoiseIdentity) {
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(identity.rootPublic);
  const reader = new FrameReader();
  const responder = createNoiseResponder(identity);
  const { noise, hello } = client();
  const staticKeys = Curve.generateKeyPair();
  const [helloFrame] = reader.push(hello);
  const serverHello = proto.HandshakeMessage.decode(responder.hello(helloFrame!).frame);
  const sealedStatic = noise.processHandshake(serverHello, staticKeys);
  const payload = noise.encrypt(Buffer.from("who I am"));
  const finish = proto.HandshakeMessage.encode({ clientFinish: { static: sealedStatic, payload } }).finish();
  const [finishFrame] = reader.push(noise.encodeFrame(finish));
  const learned = responder.finish(finishFrame!);
  await noise.finishInit();
  return { noise, responder, reader, staticKeys, learned };
}

Deno.test("a client that pins the root key completes the handshake, and both sides can decrypt", async () => {
  const { noise, responder, reader, staticKeys, learned } = await shakeHands(createNoiseIdentity(NOW));
  assert.deepEqual(Buffer.from(learned.staticPublic), Buffer.from(staticKeys.public));
  assert.equal(Buffer.from(learned.payload).toString(), "who I am");
  for (const text of ["first", "second", ""]) {
    const [sealed] = reader.push(noise.encodeFrame(Buffer.from(text)));
    assert.equal(Buffer.from(responder.decrypt(sealed!)).toString(), text);
    assert.equal(Buffer.from(noise.decrypt(responder.encrypt(Buffer.from(text)))).toString(), text);
  }
});

Deno.test("the root key signs the intermediate, which signs the static key; no other root does", () => {
  const { certificate, rootPublic, staticKeys } = createNoiseIdentity(NOW);
  const { leaf, intermediate } = proto.CertChain.decode(certificate);
  const { Details } = proto.CertChain.NoiseCertificate;
  const vouchedFor = Details.decode(intermediate!.details!);
  assert.equal(vouchedFor.issuerSerial, 0);
  assert.ok(isSignedBy(rootPublic, intermediate!.details!, intermediate!.signature!));
  assert.ok(isSignedBy(vouchedFor.key!, leaf!.details!, leaf!.signature!));
  assert.deepEqual(Buffer.from(Details.decode(leaf!.details!).key!), Buffer.from(staticKeys.public));
  assert.ok(!isSignedBy(createNoiseIdentity(NOW).rootPublic, intermediate!.details!, intermediate!.signature!));
});

Deno.test("nothing decrypts after a frame that was altered, repeated or lost", async () => {
  const scenarios = {
    altered: (a: Uint8Array) => [a.map((byte, i) => (i === 0 ? byte ^ 1 : byte))],
    repeated: (a: Uint8Array) => [a, a],
    "left out": (_a: Uint8Array, b: Uint8Array) => [b],
    "cut short": (a: Uint8Array) => [a.subarray(0, 8)],
  };
  for (const [name, frames] of Object.entries(scenarios)) {
    const { noise, responder, reader } = await shakeHands(createNoiseIdentity(NOW));
    const [a, b] = ["one", "two"].flatMap((text) => reader.push(noise.encodeFrame(Buffer.from(text))));
    assert.throws(() => frames(a!, b!).forEach((frame) => responder.decrypt(frame)), name);
  }
});

Deno.test("a handshake without a valid hello or finish is refused", () => {
  const responder = createNoiseResponder(createNoiseIdentity(NOW));
  assert.throws(() => responder.hello(proto.HandshakeMessage.encode({}).finish()), /client hello/);
  assert.throws(() => responder.finish(proto.HandshakeMessage.encode({}).finish()), /client finish/);
  assert.throws(() => responder.encrypt(new Uint8Array(1)), /not finished/);
});

Deno.test("frames are the same however the chunks are split, with and without routing information", () => {
  for (const routingInfo of [undefined, Uint8Array.of(1, 2, 3)]) {
    const { noise, hello } = client(routingInfo);
    const stream = Buffer.concat([hello, noise.encodeFrame(Buffer.from("next")), noise.encodeFrame(Buffer.alloc(0))]);
    const whole = new FrameReader().push(stream);
    const reader = new FrameReader();
    const bytewise = [...stream].flatMap((byte) => reader.push(Uint8Array.of(byte)));
    assert.equal(whole.length, 3);
    assert.deepEqual(bytewise.map((f) => Buffer.from(f)), whole.map((f) => Buffer.from(f)));
  }
});

Deno.test("another protocol's intro and a frame that is too long are refused", () => {
  assert.throws(() => new FrameReader().push(Buffer.from("GET / HTTP/1.1")), /intro/);
  const reader = new FrameReader();
  reader.push(NOISE_WA_HEADER);
  assert.throws(() => reader.push(Uint8Array.of(255, 255, 255)), /too long/);
});
