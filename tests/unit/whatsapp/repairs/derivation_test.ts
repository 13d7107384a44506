/** Keys that are derived in one call, and the library's own beside them. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import crypto from "libsignal/src/crypto.js";
import { repairDerivation } from "../../../../src/whatsapp/baileys/repairs/signal.ts";

type Derivation = NonNullable<Parameters<typeof repairDerivation>[0]>;

function repaired(): Derivation {
  const derivation = { ...crypto };
  repairDerivation(derivation);
  return derivation;
}

Deno.test("the keys are those that the library derives by itself, as many as are asked for", () => {
  const { deriveSecrets } = repaired();
  const library: Derivation = crypto;
  assert.notEqual(deriveSecrets, library.deriveSecrets);
  for (
    const info of ["WhisperMessageKeys", "WhisperRatchet", "WhisperText", "WhisperGroup"].map((t) => Buffer.from(t))
  ) {
    for (const chunks of [1, 2, 3, undefined]) {
      for (const salt of [Buffer.alloc(32), randomBytes(32)]) {
        const input = randomBytes(chunks === 3 ? 160 : 32);
        const keys = deriveSecrets(input, salt, info, chunks);
        assert.deepEqual(keys, library.deriveSecrets(input, salt, info, chunks));
        for (const key of keys) assert(key instanceof Buffer);
      }
    }
  }
});

Deno.test("the MAC is the one that the library makes by itself, for keys of any length", () => {
  const { calculateMAC } = repaired();
  const library: Derivation = crypto;
  assert.notEqual(calculateMAC, library.calculateMAC);
  for (const length of [0, 1, 32, 63, 64, 65, 200]) {
    for (const size of [0, 1, 100]) {
      const [key, data] = [randomBytes(length), randomBytes(size)];
      const mac = calculateMAC(key, data);
      assert.deepEqual(mac, library.calculateMAC(key, data), `${length} ${size}`);
      assert(mac instanceof Buffer);
    }
  }
});
