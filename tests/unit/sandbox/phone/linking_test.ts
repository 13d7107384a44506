import assert from "node:assert/strict";
import { type BinaryNode, configureSuccessfulPairing, Curve, proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import * as libsignal from "libsignal";
import QRCode from "qrcode";
import { readQr } from "../../../../src/sandbox/phone/linking.ts";
import { SmallNetwork } from "./small_network.ts";

/** Exported by the library, but not among its types. */
const { curve } = libsignal as unknown as {
  curve: { verifySignature(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean };
};

function makeCompanion() {
  const identity = Curve.generateKeyPair();
  const noise = Curve.generateKeyPair();
  const advSecret = randomBytes(32);
  const fields = [
    "2@ref/+=",
    ...[noise.public, identity.public, advSecret].map((key) => Buffer.from(key).toString("base64")),
  ];
  return { identity, noise, advSecret, text: `https://wa.me/settings/linked_devices#${[...fields, "7"].join(",")}` };
}

function pairSuccess(signed: Uint8Array): BinaryNode {
  return {
    tag: "iq",
    attrs: { id: "1", type: "set" },
    content: [{
      tag: "pair-success",
      attrs: {},
      content: [
        { tag: "device-identity", attrs: {}, content: signed },
        { tag: "device", attrs: { jid: "15550001:1@s.whatsapp.net", lid: "915550001:1@lid" } },
      ],
    }],
  };
}

Deno.test("a QR is read from its text, with and without the link, and from a picture of it", async () => {
  const companion = makeCompanion();
  const expected = {
    ref: "2@ref/+=",
    noisePublic: companion.noise.public,
    identityPublic: companion.identity.public,
    advSecret: companion.advSecret,
  };
  const bare = companion.text.slice(companion.text.indexOf("#") + 1);
  for (const qr of [companion.text, bare, await QRCode.toDataURL(companion.text)]) {
    assert.deepEqual(readQr(qr), expected);
  }
});

Deno.test("anything but the QR of a companion is refused", async () => {
  const { text } = makeCompanion();
  const wrong = [
    "",
    "hello",
    text.slice(0, -20).replace(/,[^,]*$/, ""),
    `${text},more`,
    "data:image/png;base64,AAAA",
    await QRCode.toDataURL("https://example.org"),
    "x".repeat(5 * 1024 * 1024),
  ];
  for (const qr of wrong) assert.throws(() => readQr(qr), { code: "validation_failed" });
  await assert.rejects(new SmallNetwork().phone("15550001").scan("hello"), { code: "validation_failed" });
});

Deno.test("Baileys accepts the ADV identity that a phone signs after a scan, and the signatures are valid", async () => {
  const network = new SmallNetwork();
  const phone = network.phone("15550001");
  const { identity, advSecret, text } = makeCompanion();
  let signed = new Uint8Array();
  network.acceptQr = (_phone, ref, bytes) => {
    assert.equal(ref, "2@ref/+=");
    signed = Uint8Array.from(bytes);
    return { kind: "linked", deviceJid: "15550001:1@s.whatsapp.net" };
  };
  assert.deepEqual(await phone.scan(await QRCode.toDataURL(text)), {
    kind: "linked",
    deviceJid: "15550001:1@s.whatsapp.net",
  });

  const creds = { signedIdentityKey: identity, signalIdentities: [] };
  const pairing = { ...creds, advSecretKey: advSecret.toString("base64") };
  const { creds: update } = configureSuccessfulPairing(pairSuccess(signed), pairing);
  assert.equal(update.me?.lid, "915550001:1@lid");
  // Baileys' own check of the signature always passes, so it is repeated with libsignal itself.
  const account = update.account;
  const message = Buffer.concat([Buffer.from([6, 0]), account!.details!, identity.public]);
  const key = Buffer.concat([Buffer.from([5]), account!.accountSignatureKey!]);
  assert.ok(curve.verifySignature(key, message, Buffer.from(account!.accountSignature!)));
  assert.deepEqual(Buffer.from(account!.accountSignatureKey!), network.takeBundle(phone.jid)?.identityKey);
  const { timestamp, keyIndex } = proto.ADVDeviceIdentity.decode(account!.details!);
  assert.deepEqual([Number(timestamp) * 1000, keyIndex], [network.runtime.clock.now(), 1]);

  const another = { ...creds, advSecretKey: randomBytes(32).toString("base64") };
  assert.throws(() => configureSuccessfulPairing(pairSuccess(signed), another), /Invalid account signature/);
});

Deno.test("after a refresh only a QR with a new secret is offered to the network", async () => {
  const network = new SmallNetwork();
  const phone = network.phone("15550001");
  const offered: Uint8Array[] = [];
  network.acceptQr = (_phone, _ref, signed) => {
    offered.push(signed);
    return offered.length === 1 ? { kind: "refresh" } : { kind: "linked", deviceJid: "15550001:1@s.whatsapp.net" };
  };
  const [before, after] = [makeCompanion(), makeCompanion()];
  assert.equal((await phone.scan(before.text)).kind, "refresh");
  assert.equal((await phone.scan(before.text)).kind, "refresh");
  assert.equal(offered.length, 1);
  assert.equal((await phone.scan(after.text)).kind, "linked");
  const { details, hmac } = proto.ADVSignedDeviceIdentityHMAC.decode(offered[1]!);
  assert.deepEqual(Buffer.from(hmac!), createHmac("sha256", after.advSecret).update(details!).digest());
});

Deno.test("a QR that is scanned again does not count as another companion", async () => {
  const network = new SmallNetwork();
  const phone = network.phone("15550001");
  const offered: Uint8Array[] = [];
  let device = 1;
  network.acceptQr = (_phone, _ref, signed) => {
    offered.push(signed);
    return { kind: "linked", deviceJid: `15550001:${device}@s.whatsapp.net` };
  };
  const [first, second] = [makeCompanion(), makeCompanion()];
  await phone.scan(first.text);
  await phone.scan(first.text);
  device = 2;
  // The first companion again, which has not come as far as its link.
  await phone.scan(first.text);
  device = 3;
  await phone.scan(second.text);
  assert.deepEqual([offered[0]!, offered[2]!, offered[3]!].map(keyIndexOf), [1, 2, 3]);
});

function keyIndexOf(signed: Uint8Array): number {
  const { details } = proto.ADVSignedDeviceIdentityHMAC.decode(signed);
  const identity = proto.ADVSignedDeviceIdentity.decode(details!);
  return proto.ADVDeviceIdentity.decode(identity.details!).keyIndex!;
}
