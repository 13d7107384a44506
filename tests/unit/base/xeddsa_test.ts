/** XEdDSA beside the implementation that libsignal comes with, whose answers these must be, byte by byte. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { Point } from "@noble/ed25519";
import * as curve25519 from "curve25519-js";
import { calculateSignature, verifySignature } from "libsignal/src/curve.js";
import { repairSignatures, sign, verify } from "../../../src/base/xeddsa.ts";

/** The library's own, before it is repaired. */
const theirs = { ...curve25519 };
const MESSAGE = Buffer.from("to whom it may concern");

/** Up to 64 bytes, the same at every run. */
function bytes(seed: string, length: number): Buffer {
  return createHash("sha512").update(seed).digest().subarray(0, length);
}

function keysOf(seed: string) {
  const { public: publicKey, private: privateKey } = theirs.generateKeyPair(Uint8Array.from(bytes(seed, 32)));
  return { publicKey: Buffer.from(publicKey), privateKey: Buffer.from(privateKey) };
}

/** The same signature with its scalar written as another number of the same remainder. */
function written(signature: Uint8Array): Buffer {
  const [commitment, scalar] = [signature.subarray(0, 32), Buffer.from(signature.subarray(32))];
  const signBit = scalar[31]! & 0x80;
  scalar[31]! &= 0x7f;
  const sum = BigInt(`0x${scalar.reverse().toString("hex")}`) + Point.CURVE().n;
  const other = Buffer.from(sum.toString(16).padStart(64, "0"), "hex").reverse();
  other[31]! |= signBit;
  return Buffer.concat([commitment, other]);
}

Deno.test("signatures are the library's own, and each holds by the other's check", () => {
  const signs = new Set<number>();
  for (let round = 0; round < 8; round++) {
    const { publicKey, privateKey } = keysOf(`key ${round}`);
    const message = bytes(`message ${round}`, round * 8);
    const signature = Buffer.from(sign(privateKey, message));
    assert.deepEqual(
      signature,
      Buffer.from(theirs.sign(Uint8Array.from(privateKey), Uint8Array.from(message), undefined)),
    );
    assert.ok(theirs.verify(publicKey, message, signature), `round ${round}`);
    assert.ok(verify(publicKey, message, signature), `round ${round}`);
    signs.add(signature[63]! & 0x80);
  }
  assert.equal(signs.size, 2);
});

Deno.test("a key is taken whatever its highest bit, which says nothing", () => {
  const { publicKey, privateKey } = keysOf("key");
  const signature = sign(privateKey, MESSAGE);
  publicKey[31]! |= 0x80;
  assert.ok(verify(publicKey, MESSAGE, signature));
});

Deno.test("a key that is no point of the curve has no signature", () => {
  const signature = sign(keysOf("key").privateKey, MESSAGE);
  const minusOne = Buffer.alloc(32, 0xff);
  minusOne[0] = 0xec;
  minusOne[31] = 0x7f;
  for (const key of [minusOne, Buffer.alloc(32), Buffer.alloc(32, 0xff)]) {
    assert.equal(verify(key, MESSAGE, signature), false, key.toString("hex"));
  }
});

Deno.test("what is no private key signs nothing", () => {
  assert.throws(() => sign(Buffer.alloc(31), MESSAGE), RangeError);
});

Deno.test("libsignal signs and checks by it: a signature has one form only", () => {
  const { publicKey, privateKey } = keysOf("key");
  const key = Buffer.concat([Buffer.of(5), publicKey]);
  const signature = calculateSignature(privateKey, MESSAGE);
  assert.ok(verifySignature(key, MESSAGE, written(signature)), "the library by itself takes both");
  repairSignatures();
  assert.deepEqual(Buffer.from(calculateSignature(privateKey, MESSAGE)), Buffer.from(signature));
  assert.equal(verifySignature(key, MESSAGE, signature), true);
  assert.equal(verifySignature(key, MESSAGE, written(signature)), false);
});
