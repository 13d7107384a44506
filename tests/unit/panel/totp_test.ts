import assert from "node:assert/strict";
import { base32, totpCode, totpStep, totpUri } from "../../../src/panel/logins/totp.ts";

const secret = new TextEncoder().encode("12345678901234567890");

Deno.test("codes are those of RFC 6238, appendix B", () => {
  const vectors: [seconds: number, code: string][] = [
    [59, "94287082"],
    [1111111109, "07081804"],
    [1111111111, "14050471"],
    [1234567890, "89005924"],
    [2000000000, "69279037"],
    [20000000000, "65353130"],
  ];
  for (const [seconds, code] of vectors) assert.equal(totpCode(secret, Math.floor(seconds / 30), 8), code);
});

Deno.test("a code counts for a step to either side, and never again once it was used", () => {
  const now = 1234567890_000;
  const step = Math.floor(now / 30_000);
  for (const drift of [-1, 0, 1]) {
    assert.equal(totpStep(secret, totpCode(secret, step + drift), { now, lastStep: 0 }), step + drift);
  }
  assert.equal(totpStep(secret, totpCode(secret, step + 2), { now, lastStep: 0 }), null);
  assert.equal(totpStep(secret, totpCode(secret, step), { now, lastStep: step }), null);
});

Deno.test("the secret is written as apps read it", () => {
  assert.equal(base32(secret), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
  assert.equal(
    totpUri(secret, "ana@example.com"),
    "otpauth://totp/Paloma:ana%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Paloma",
  );
});
