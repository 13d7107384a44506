/** Signatures by Curve25519 keys, against a vector that others published, and the library's own answer beside it. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Curve } from "@whiskeysockets/baileys";
import { repairCurve } from "../../../../src/whatsapp/baileys/repairs/handshake.ts";

/** From the tests of Signal's own libraries (Curve25519Test, testSignature): made by another implementation. */
const KEY = Buffer.from("05ab7e717d4a163b7d9a1d8071dfe9dcf8cdcd1cea3339b6356be84d887e322c64", "hex");
const MESSAGE = Buffer.from("05edce9d9c415ca78cb7252e72c2c4a554d3eb29485a0e1d503118d1a82d99fb4a", "hex");
const SIGNATURE = Buffer.from(
  "5de88ca9a89b4a115da79109c67c9c7464a3e4180274f1cb8c63c2984e286dfb" +
    "ede82deb9dcd9fae0bfbb821569b3d9001bd8130cd11d486cef047bd60b86e88",
  "hex",
);

function repaired(): Pick<typeof Curve, "verify"> {
  const curve = { ...Curve };
  repairCurve(curve);
  return curve;
}

Deno.test("a signature that Signal's libraries made holds, by the key with its type byte and without", () => {
  assert.equal(repaired().verify(KEY, MESSAGE, SIGNATURE), true);
  assert.equal(repaired().verify(KEY.subarray(1), MESSAGE, SIGNATURE), true);
  assert.equal(repaired().verify(Uint8Array.from(KEY.subarray(1)), MESSAGE, SIGNATURE), true);
});

Deno.test("a signature with any byte changed is refused", () => {
  for (let index = 0; index < SIGNATURE.length; index++) {
    const forged = SIGNATURE.map((byte, at) => at === index ? byte ^ 1 : byte);
    assert.equal(repaired().verify(KEY, MESSAGE, forged), false, `byte ${index}`);
  }
});

Deno.test("another message, another key, and what is no key or no signature are refused", () => {
  const { verify } = repaired();
  assert.equal(verify(KEY, Buffer.concat([MESSAGE, Buffer.of(0)]), SIGNATURE), false);
  assert.equal(verify(Curve.generateKeyPair().public, MESSAGE, SIGNATURE), false);
  assert.equal(verify(KEY.subarray(2), MESSAGE, SIGNATURE), false);
  assert.equal(verify(Buffer.concat([Buffer.of(4), KEY.subarray(1)]), MESSAGE, SIGNATURE), false);
  assert.equal(verify(KEY, MESSAGE, SIGNATURE.subarray(1)), false);
  assert.equal(verify(KEY, MESSAGE, new Uint8Array()), false);
  assert.equal(verify(undefined as unknown as Uint8Array, MESSAGE, SIGNATURE), false);
});

Deno.test("what the library signs holds", () => {
  for (let round = 0; round < 20; round++) {
    const keys = Curve.generateKeyPair();
    assert.equal(repaired().verify(keys.public, MESSAGE, Curve.sign(keys.private, MESSAGE)), true);
  }
});

Deno.test("the library's own check takes anything for a signature: when this fails, the repair can go", () => {
  assert.equal(Curve.verify(KEY, MESSAGE, new Uint8Array(64)), true);
});
