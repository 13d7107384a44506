/** The passkey step of a link, without a network. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type BinaryNode, initAuthCreds } from "@whiskeysockets/baileys";
import { Passkey } from "../../../../src/whatsapp/baileys/linking/passkey.ts";
import { PasskeyRefused, type PasskeyRequest } from "../../../../src/whatsapp/connection.ts";
import { testRuntime } from "../../../support/runtime.ts";

const MINUTE_MS = 60_000;

/** A signature of a challenge, in the form that a browser gives it. */
function signatureOf(challenge: string) {
  const clientDataJSON = Buffer.from(JSON.stringify({ challenge })).toString("base64url");
  const response = { clientDataJSON, authenticatorData: "AA", signature: "AA" };
  return { id: "AA", rawId: "AA", type: "public-key" as const, response, clientExtensionResults: {} };
}

Deno.test("a signature of another challenge does not prolong the one that is asked for", async () => {
  const runtime = testRuntime();
  const asked: PasskeyRequest[] = [];
  let count = 0;
  const challenge = (): BinaryNode => ({
    tag: "passkey_request_options",
    attrs: {},
    content: Buffer.from(JSON.stringify({ challenge: `challenge ${++count}` })),
  });
  const passkey = new Passkey({
    query: () => Promise.resolve({ tag: "iq", attrs: {}, content: [challenge()] }),
    auth: { creds: initAuthCreds(), saveCreds: () => Promise.resolve() },
    runtime,
  }, { asked: (request) => void (request && asked.push(request)), failed: (reason) => assert.fail(reason) });
  const expiresAt = runtime.clock.now() + 10 * MINUTE_MS;
  await passkey.requested({ tag: "notification", attrs: {}, content: [challenge()] });
  await runtime.clock.advance(9 * MINUTE_MS);
  await assert.rejects(passkey.sign(signatureOf("another")), PasskeyRefused);
  assert.deepEqual(asked.map((request) => request.expiresAt), [expiresAt, expiresAt]);
  await runtime.clock.advance(MINUTE_MS);
  assert.deepEqual(asked.map((request) => "options" in request && request.options.challenge), [
    "challenge 1",
    "challenge 1",
    "challenge 2",
  ]);
  passkey.end();
});
