import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";
import type { LoggedEvent } from "../../../src/event/event.ts";
import { plain } from "../../../src/event/plain_json.ts";
import type { Random } from "../../../src/runtime.ts";
import { palomaFormat } from "../../../src/webhook/format.ts";
import { makeSecret, signatureHeaders } from "../../../src/webhook/signature.ts";
import { seededRandom } from "../../support/runtime.ts";

/** The reference check of the specification. */
function verifies(body: string, { signature, secret }: { signature: string; secret: string }): boolean {
  const expected = createHmac("sha256", secret).update(JSON.stringify(JSON.parse(body))).digest("hex");
  return timingSafeEqual(Buffer.from(expected), Buffer.from(signature));
}

const STRINGS = [
  "",
  "a",
  "😀",
  "👩‍👩‍👧‍👦",
  "\ud800",
  "\udc00x",
  "a\ud83d",
  "\u0000\u0007\u001f",
  "\u2028\u2029",
  '\\"/',
  "é",
  "e\u0301",
  "0",
  "-1",
  "__proto__",
  "constructor",
  "toJSON",
  "<script>",
  "\ufeff",
  "\uffff",
  "1e3",
  "name",
];
const NUMBERS = [
  0,
  -0,
  1,
  -1,
  0.1,
  1e21,
  1e-7,
  123456789012345680000,
  2 ** 53,
  -(2 ** 53) - 2,
  Number.MAX_VALUE,
  Number.MIN_VALUE,
  NaN,
  Infinity,
  -Infinity,
  1768478400,
];
const KEYS = [
  "b",
  "a",
  "10",
  "9",
  "0",
  "-1",
  "01",
  "4294967295",
  "4294967294",
  "1.5",
  "__proto__",
  "é",
  "\ud800",
  "",
  "toJSON",
];

function generated(random: Random, depth = 0): unknown {
  const pick = <T>(of: readonly T[]): T => of[random.between(0, of.length - 1)]!;
  switch (random.between(0, depth > 4 ? 6 : 9)) {
    case 0:
      return pick([true, false, null, undefined]);
    case 1:
      return pick(NUMBERS);
    case 2:
      return random.between(-1e9, 1e9) / 1000;
    case 3:
      return BigInt(random.between(0, 1e9)) * pick([1n, 10n ** 12n]);
    case 4:
      return new Uint8Array(random.bytes(random.between(0, 8)));
    case 5:
    case 6:
      return pick(STRINGS) + pick(STRINGS);
    case 7:
      return Array.from({ length: random.between(0, 4) }, () => generated(random, depth + 1));
    default: {
      const members: Record<string, unknown> = {};
      for (let i = random.between(0, 5); i > 0; i--) members[pick(KEYS)] = generated(random, depth + 1);
      return members;
    }
  }
}

Deno.test("10,000 generated bodies pass the reference check: parse, stringify, HMAC, compare", async () => {
  const random = seededRandom(7);
  const secret = makeSecret(random);
  for (let i = 0; i < 10_000; i++) {
    const data = plain({ text: "x", details: generated(random) });
    const event = {
      id: "evt_1",
      createdAt: 0,
      accountId: "acc_1",
      event: "message.received",
      sessionId: "ses_1",
      sessionName: plain(STRINGS[i % STRINGS.length]!),
      data,
    } as unknown as LoggedEvent;
    // As the store gives it back.
    const body = await palomaFormat.bodyOf(structuredClone(event));
    const headers = signatureHeaders({ id: event.id, at: 0, body: new TextEncoder().encode(body), secrets: [secret] });
    assert.ok(verifies(body, { signature: headers["x-webhook-signature"]!, secret }), body);
    assert.ok(body.isWellFormed() && !/\\ud[89a-f]/i.test(body), "half of a surrogate pair went out");
    assert.deepEqual(Object.keys(JSON.parse(body)), ["event", "sessionId", "sessionName", "data"]);
  }
});

Deno.test("a body that was changed by one byte, or signed with another secret, does not pass", () => {
  const secret = makeSecret(seededRandom(1));
  const body = '{"event":"message.received","sessionId":"s","sessionName":"n","data":{"text":"pay 10"}}';
  const headers = signatureHeaders({ id: "evt_1", at: 0, body: new TextEncoder().encode(body), secrets: [secret] });
  const signature = headers["x-webhook-signature"]!;
  assert.match(signature, /^[0-9a-f]{64}$/);
  assert.ok(verifies(body, { signature, secret }));
  assert.ok(!verifies(body.replace("10", "11"), { signature, secret }));
  assert.ok(!verifies(body, { signature, secret: makeSecret(seededRandom(2)) }));
});

Deno.test("the Standard Webhooks headers match the document's own test vector", () => {
  const body = new TextEncoder().encode('{"test": 2432232314}');
  const headers = signatureHeaders({
    id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    at: 1_614_265_330_000,
    body,
    secrets: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
  });
  assert.equal(headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  assert.equal(headers["webhook-id"], "msg_p5jXN8AQM9LWM0D4loKWxJek");
  assert.equal(headers["webhook-timestamp"], "1614265330");
});

Deno.test("while rotating, both secrets sign: the new one in the specified header, the old one beside it", () => {
  const [next, previous] = [makeSecret(seededRandom(1)), makeSecret(seededRandom(2))];
  const body = new TextEncoder().encode("{}");
  const both = signatureHeaders({ id: "evt_1", at: 0, body, secrets: [next, previous] });
  const alone = (secret: string) => signatureHeaders({ id: "evt_1", at: 0, body, secrets: [secret] });
  assert.equal(both["x-webhook-signature"], alone(next)["x-webhook-signature"]);
  assert.equal(both["x-webhook-signature-previous"], alone(previous)["x-webhook-signature"]);
  assert.equal(
    both["webhook-signature"],
    `${alone(next)["webhook-signature"]} ${alone(previous)["webhook-signature"]}`,
  );
  assert.equal(alone(next)["x-webhook-signature-previous"], undefined);
});

Deno.test("a secret is whsec_ and 32 bytes of base64, another each time", () => {
  const random = seededRandom(3);
  const secrets = Array.from({ length: 100 }, () => makeSecret(random));
  assert.equal(new Set(secrets).size, 100);
  for (const secret of secrets) assert.equal(Buffer.from(secret.replace(/^whsec_/, ""), "base64").length, 32);
});
