/** The panel's passkeys, with an authenticator in software. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { makePasskeys } from "../../../src/panel/logins/passkeys.ts";
import { makePeople } from "../../../src/panel/logins/people.ts";
import { panelKeys } from "../../../src/panel/rows.ts";
import { sweepPanel } from "../../../src/panel/sweep.ts";
import { Change } from "../../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

const ORIGIN = new URL("https://panel.example.com");
const MINUTE_MS = 60_000;

/** A passkey, as its authenticator has it and as the panel keeps it. */
function makeAuthenticator() {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x, y } = publicKey.export({ format: "jwk" });
  const part = (text: string | undefined) => Buffer.from(text!, "base64url");
  // COSE: an EC2 key for ES256 on P-256.
  const head = Buffer.from("a5010203262001215820", "hex");
  const cose = Buffer.concat([head, part(x), Buffer.from("225820", "hex"), part(y)]);
  return {
    publicKey: new Uint8Array(cose),
    answer(id: string, challenge: string) {
      const client = JSON.stringify({ type: "webauthn.get", challenge, origin: ORIGIN.origin, crossOrigin: false });
      const rp = createHash("sha256").update(ORIGIN.hostname).digest();
      // User present and verified; no count.
      const data = Buffer.concat([rp, Buffer.from([5, 0, 0, 0, 0])]);
      const signed = Buffer.concat([data, createHash("sha256").update(client).digest()]);
      const response = {
        clientDataJSON: Buffer.from(client).toString("base64url"),
        authenticatorData: data.toString("base64url"),
        signature: sign("sha256", signed, privateKey).toString("base64url"),
      };
      return { id, rawId: id, type: "public-key", clientExtensionResults: {}, response };
    },
  };
}

Deno.test("a passkey's challenge is answered once, to any process of the gateway, while it is good", async () => {
  const kv = new MemoryKv();
  const runtime = testRuntime();
  const seal = makeSeal(sealKey("of this gateway"), runtime.random);
  const [here, there] = [1, 2].map(() => makePasskeys({ kv, runtime, people: makePeople({ kv, seal, runtime }) }));
  const people = makePeople({ kv, seal, runtime });
  const change = new Change();
  const { id } = await people.create(change, { login: "ana", accountId: null, passwordHash: null });
  await kv.commit(change);
  const { publicKey, answer } = makeAuthenticator();
  const passkey = { id: "cGFzc2tleQ", name: "Laptop", publicKey, counter: 0, transports: [], createdAt: 0 };
  await people.update(id, (person) => ({ ...person, passkeys: [{ ...passkey, lastUsedAt: null }] }));

  const { challenge } = await here!.signInOptions(ORIGIN);
  const signed = answer(passkey.id, challenge);
  assert.equal((await there!.signIn(ORIGIN, signed))?.login, "ana");
  for (const process of [here, there]) assert.equal(await process!.signIn(ORIGIN, signed), null, "it was answered");

  const late = await here!.signInOptions(ORIGIN);
  await runtime.clock.advance(5 * MINUTE_MS);
  assert.equal(await here!.signIn(ORIGIN, answer(passkey.id, late.challenge)), null, "its time is over");
  const another = makeSeal(sealKey("of another gateway"), runtime.random);
  const foreign = makePasskeys({ kv, runtime, people: makePeople({ kv, seal: another, runtime }) });
  const { challenge: theirs } = await foreign.signInOptions(ORIGIN);
  assert.equal(await here!.signIn(ORIGIN, answer(passkey.id, theirs)), null, "it is another gateway's");

  await sweepPanel(kv, runtime.clock.now(), new AbortController().signal);
  assert.deepEqual(await Array.fromAsync(kv.list({ prefix: panelKeys.allAnswered() })), []);
});
