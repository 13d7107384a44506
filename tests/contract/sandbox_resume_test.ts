/** A client that remembers the network's static key resumes by it, in one round trip; one whose key is old falls back. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, createHash, hkdfSync } from "node:crypto";
import {
  type AuthenticationCreds,
  Curve,
  decodeBinaryNode,
  DEFAULT_CONNECTION_CONFIG,
  generateLoginNode,
  proto,
} from "@whiskeysockets/baileys";
import { LINE, onLines } from "../support/two_lines.ts";

const HEADER = Buffer.from([0x57, 0x41, 6, 3]);

/** Noise's symmetric state (5.2 of its specification), written from there and not from the network's. */
function noiseState(name: string) {
  const padded = Buffer.alloc(32);
  padded.write(name);
  let hash: Buffer = name.length > 32 ? createHash("sha256").update(name).digest() : padded;
  let chain: Buffer = hash;
  let key: Buffer = hash;
  let count = 0;
  const mixHash = (data: Uint8Array) => void (hash = createHash("sha256").update(hash).update(data).digest());
  const iv = () => Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, count++]);
  const derive = (secret: Uint8Array) => {
    const bytes = Buffer.from(hkdfSync("sha256", secret, chain, "", 64));
    return [bytes.subarray(0, 32), bytes.subarray(32)] as [Buffer, Buffer];
  };
  mixHash(HEADER);
  return {
    mixHash,
    mixKey(ours: Uint8Array, theirs: Uint8Array) {
      [chain, key] = derive(Curve.sharedKey(ours, theirs));
      count = 0;
    },
    seal(plain: Uint8Array) {
      const cipher = createCipheriv("aes-256-gcm", key, iv()).setAAD(hash);
      const sealed = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
      mixHash(sealed);
      return sealed;
    },
    open(sealed: Uint8Array) {
      const decipher = createDecipheriv("aes-256-gcm", key, iv()).setAAD(hash).setAuthTag(sealed.subarray(-16));
      const plain = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
      mixHash(sealed);
      return plain;
    },
    /** Decrypts the first frame of the transport. */
    first(sealed: Uint8Array) {
      const [, fromServer] = derive(new Uint8Array(0));
      const decipher = createDecipheriv("aes-256-gcm", fromServer, Buffer.alloc(12));
      decipher.setAuthTag(sealed.subarray(-16));
      return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
    },
  };
}

/** The frames that the network sends, one at a time. */
async function* framesOf(socket: WebSocket): AsyncGenerator<Buffer> {
  const chunks: Buffer[] = [];
  let arrived = Promise.withResolvers<void>();
  socket.addEventListener("message", ({ data }) => {
    chunks.push(Buffer.from(data));
    arrived.resolve();
  });
  socket.addEventListener("close", () => arrived.reject(new Error("the network closed")));
  let pending = Buffer.alloc(0);
  while (true) {
    pending = Buffer.concat([pending, ...chunks.splice(0)]);
    if (pending.length >= 3 && pending.length >= 3 + pending.readUIntBE(0, 3)) {
      const end = 3 + pending.readUIntBE(0, 3);
      yield pending.subarray(3, end);
      pending = pending.subarray(end);
      continue;
    }
    await arrived.promise;
    arrived = Promise.withResolvers();
  }
}

/** Logs in; `known`: the network's static key, if the client has one. Resolves to the pattern that carried the login. */
async function logIn(url: string, creds: AuthenticationCreds, known: Uint8Array | null) {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  const frames = framesOf(socket);
  const next = async () => (await frames.next()).value as Buffer;
  const send = (message: proto.IHandshakeMessage, intro = Buffer.alloc(0)) => {
    const bytes = proto.HandshakeMessage.encode(message).finish();
    const length = Buffer.alloc(3);
    length.writeUIntBE(bytes.length, 0, 3);
    socket.send(Buffer.concat([intro, length, bytes]));
  };
  const [own, e] = [creds.noiseKey, Curve.generateKeyPair()];
  const config = { ...DEFAULT_CONNECTION_CONFIG, syncFullHistory: false };
  const payload = proto.ClientPayload.encode(generateLoginNode(creds.me!.id, config)).finish();

  let noise = noiseState("Noise_IK_25519_AESGCM_SHA256");
  if (known) {
    noise.mixHash(known);
    noise.mixHash(e.public);
    noise.mixKey(e.private, known);
    const sealedStatic = noise.seal(own.public);
    noise.mixKey(own.private, known);
    send({ clientHello: { ephemeral: e.public, static: sealedStatic, payload: noise.seal(payload) } }, HEADER);
  } else {
    send({ clientHello: { ephemeral: e.public } }, HEADER);
  }
  const { ephemeral, static: sealedStatic, payload: certificate } = proto.HandshakeMessage.decode(await next())
    .serverHello!;
  let serverKey: Uint8Array | null | undefined = known;
  let pattern = "IK";
  if (known && !sealedStatic?.length) {
    noise.mixHash(ephemeral!);
    noise.mixKey(e.private, ephemeral!);
    noise.mixKey(own.private, ephemeral!);
    noise.open(certificate!);
  } else {
    pattern = known ? "XXfallback" : "XX";
    noise = noiseState(`Noise_${pattern}_25519_AESGCM_SHA256`);
    noise.mixHash(e.public);
    noise.mixHash(ephemeral!);
    noise.mixKey(e.private, ephemeral!);
    const theirs = noise.open(sealedStatic!);
    noise.mixKey(e.private, theirs);
    const { leaf } = proto.CertChain.decode(noise.open(certificate!));
    serverKey = proto.CertChain.NoiseCertificate.Details.decode(leaf!.details!).key;
    const sealedOwn = noise.seal(own.public);
    noise.mixKey(own.private, ephemeral!);
    send({ clientFinish: { static: sealedOwn, payload: noise.seal(payload) } });
  }
  const { tag } = await decodeBinaryNode(noise.first(await next()));
  const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
  socket.close();
  await closed;
  return { pattern, tag, serverKey: serverKey! };
}

onLines(
  "a client resumes by the key that it remembers, and falls back where that is another",
  async ({ network, line }) => {
    await line.close();
    const { creds } = line.auth;
    const first = await logIn(network.url, creds, null);
    assert.deepEqual([first.pattern, first.tag], ["XX", "success"]);
    const again = await logIn(network.url, creds, first.serverKey);
    assert.deepEqual([again.pattern, again.tag], ["IK", "success"]);
    const late = await logIn(network.url, creds, Curve.generateKeyPair().public);
    assert.deepEqual([late.pattern, late.tag, Buffer.from(late.serverKey)], [
      "XXfallback",
      "success",
      Buffer.from(first.serverKey),
    ]);
    // The network knows the device by the key that it proved, in any pattern.
    const stranger = { ...creds, noiseKey: Curve.generateKeyPair() };
    assert.equal((await logIn(network.url, stranger, first.serverKey)).tag, "failure");
    assert.equal(network.switchboard.directory.account(LINE)!.companions.size, 1);
  },
);
