import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { type CipherPrototype, repairCiphers, repairPrototype } from "../../src/repair_ciphers.ts";

const KEY = randomBytes(32);
const IV = randomBytes(16);

/** A cipher with the fault of Deno 2.4: no padding after whole blocks. */
function makeFaultyClass(algorithm: string) {
  return class implements CipherPrototype {
    #cipher = createCipheriv(algorithm, KEY, IV);
    #bytes = 0;

    update(data: string | Uint8Array): Buffer {
      this.#bytes += data.length;
      return this.#cipher.update(data as Uint8Array);
    }

    final(): Buffer {
      const blocks = algorithm.endsWith("-cbc");
      if (blocks && this.#bytes % 16 === 0) this.#cipher.setAutoPadding(false);
      return this.#cipher.final();
    }

    setAutoPadding(): void {}
  };
}

function encrypt(cipher: CipherPrototype, plain: Uint8Array, step: number): Buffer {
  const parts: (Buffer | string)[] = [];
  for (let at = 0; at < plain.length; at += step) parts.push(cipher.update(plain.subarray(at, at + step)));
  return Buffer.concat([...parts, cipher.final()] as Buffer[]);
}

for (const algorithm of ["aes-256-cbc", "aes-256-ctr"]) {
  Deno.test(`a faulty runtime's ${algorithm} encrypts every length rightly once it is repaired`, () => {
    const Faulty = makeFaultyClass(algorithm);
    const aligned = randomBytes(32);
    const broken = algorithm.endsWith("cbc");
    assert.equal(encrypt(new Faulty(), aligned, 32).length, 32);
    repairPrototype(Faulty.prototype);
    assert.equal(encrypt(new Faulty(), aligned, 32).length, broken ? 48 : 32);
    for (let length = 1; length <= 70; length++) {
      const plain = randomBytes(length);
      for (const step of [1, 5, 16, 17, 32, 100]) {
        const decipher = createDecipheriv(algorithm, KEY, IV);
        const decrypted = Buffer.concat([decipher.update(encrypt(new Faulty(), plain, step)), decipher.final()]);
        assert.deepEqual(decrypted, plain, `${length} bytes, ${step} at a time`);
      }
    }
  });
}

Deno.test("after the repair this runtime pads whole blocks", () => {
  repairCiphers();
  for (const length of [1, 15, 16, 17, 32, 48]) {
    const plain = Buffer.alloc(length, 1);
    const cipher = createCipheriv("aes-256-cbc", KEY, IV);
    const encrypted = Buffer.concat([cipher.update(plain), cipher.final()]);
    const decipher = createDecipheriv("aes-256-cbc", KEY, IV);
    assert.deepEqual(Buffer.concat([decipher.update(encrypted), decipher.final()]), plain);
  }
  assert.equal(repairCiphers(), false, "there is nothing left to repair");
});

Deno.test("a repaired cipher still honours encodings and switched-off padding", () => {
  const Faulty = makeFaultyClass("aes-256-cbc");
  repairPrototype(Faulty.prototype);
  const cipher: CipherPrototype = new Faulty();
  const text = (cipher.update("00".repeat(16), "hex", "hex") as string) + cipher.final("hex");
  assert.match(text, /^[0-9a-f]{64}$/);
  const bare: CipherPrototype = new Faulty();
  bare.setAutoPadding(false);
  assert.equal(encrypt(bare, Buffer.alloc(16), 16).length, 16);
});
