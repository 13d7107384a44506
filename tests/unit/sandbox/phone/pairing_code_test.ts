import assert from "node:assert/strict";
import {
  aesDecryptCTR,
  aesEncryptCTR,
  aesEncryptGCM,
  Curve,
  derivePairingCodeKey,
  hkdf,
  proto,
} from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import type { CompanionFinish, PrimaryHello } from "../../../../src/sandbox/world/uplink.ts";
import { SmallNetwork } from "./small_network.ts";

/** The companion's half, as Baileys computes it in its socket and in its answer to primary_hello. */
class Companion {
  readonly identity = Curve.generateKeyPair();
  readonly ephemeral = Curve.generateKeyPair();
  readonly code: string;
  advSecret = Buffer.alloc(0);

  constructor(code: string) {
    this.code = code;
  }

  async hello() {
    const [salt, iv] = [randomBytes(32), randomBytes(16)];
    const key = await derivePairingCodeKey(this.code, salt);
    const wrappedEphemeral = Buffer.concat([salt, iv, aesEncryptCTR(this.ephemeral.public, key, iv)]);
    return { ref: "ref-1", wrappedEphemeral };
  }

  async finish(hello: PrimaryHello): Promise<CompanionFinish> {
    const wrapped = Buffer.from(hello.wrappedEphemeral);
    const key = await derivePairingCodeKey(this.code, wrapped.subarray(0, 32));
    const primaryEphemeral = aesDecryptCTR(wrapped.subarray(48, 80), key, wrapped.subarray(32, 48));
    const shared = Curve.sharedKey(this.ephemeral.private, primaryEphemeral);
    const [random, salt, iv] = [randomBytes(32), randomBytes(32), randomBytes(12)];
    const bundleKey = hkdf(shared, 32, { salt, info: "link_code_pairing_key_bundle_encryption_key" });
    const bundle = Buffer.concat([this.identity.public, hello.identityPublic, random]);
    const sealed = aesEncryptGCM(bundle, bundleKey, iv, Buffer.alloc(0));
    const identityShared = Curve.sharedKey(this.identity.private, hello.identityPublic);
    const secret = Buffer.concat([shared, identityShared, random]);
    this.advSecret = Buffer.from(hkdf(secret, 32, { info: "adv_secret" }));
    return { wrappedKeyBundle: Buffer.concat([salt, iv, sealed]), identityPublic: this.identity.public };
  }
}

function networkWith(companion: Companion, hello: Awaited<ReturnType<Companion["hello"]>>) {
  const network = new SmallNetwork();
  const accepted: { ref: string; signed: Uint8Array }[] = [];
  network.codeRequest = () => hello;
  network.answerCode = (ref, primary) => {
    assert.equal(ref, hello.ref);
    return companion.finish(primary);
  };
  network.acceptQr = (_phone, ref, signed) => {
    accepted.push({ ref, signed });
    return { kind: "linked", deviceJid: "15550001:1@s.whatsapp.net" };
  };
  return { network, accepted };
}

Deno.test("both sides derive the same ADV secret from a code, and the companion is linked", async () => {
  const companion = new Companion("ABCD1234");
  const { network, accepted } = networkWith(companion, await companion.hello());
  const phone = network.phone("15550001");
  assert.equal((await phone.enterCode("abcd-1234")).kind, "linked");
  assert.equal(accepted[0]?.ref, "ref-1");
  const { details, hmac } = proto.ADVSignedDeviceIdentityHMAC.decode(accepted[0].signed);
  assert.deepEqual(Buffer.from(hmac!), createHmac("sha256", companion.advSecret).update(details!).digest());
});

Deno.test("a mistyped code links nothing", async () => {
  const companion = new Companion("ABCD1234");
  const { network, accepted } = networkWith(companion, await companion.hello());
  assert.deepEqual(await network.phone("15550001").enterCode("ABCD1235"), { kind: "wrong_code" });
  assert.deepEqual(accepted, []);
});

Deno.test("a companion that answers with garbage, or not at all, is not linked", async () => {
  const companion = new Companion("ABCD1234");
  const hello = await companion.hello();
  const short = networkWith(companion, { ...hello, wrappedEphemeral: hello.wrappedEphemeral.subarray(0, 60) });
  short.network.answerCode = () =>
    Promise.resolve({ wrappedKeyBundle: randomBytes(20), identityPublic: randomBytes(3) });
  assert.deepEqual(await short.network.phone("15550001").enterCode("ABCD1234"), { kind: "wrong_code" });
  const gone = networkWith(companion, hello);
  gone.network.answerCode = () => Promise.resolve(null);
  assert.deepEqual(await gone.network.phone("15550001").enterCode("ABCD1234"), { kind: "wrong_code" });
});

Deno.test("a code that no companion waits for links nothing, and a malformed one is refused", async () => {
  const phone = new SmallNetwork().phone("15550001");
  assert.deepEqual(await phone.enterCode("ABCD1234"), { kind: "no_request" });
  await assert.rejects(phone.enterCode("ABC"), { code: "validation_failed" });
});
