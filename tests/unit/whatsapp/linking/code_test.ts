/** Steps of a link by code that are not about the code that is shown, or not whole. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { EventEmitter } from "node:events";
import { type BinaryNode, Browsers, initAuthCreds } from "@whiskeysockets/baileys";
import { CodeExpired, CodeLink } from "../../../../src/whatsapp/baileys/linking/code.ts";
import { testRuntime } from "../../../support/runtime.ts";

const REF = "2@the ref of the code";

const node = (tag: string, content: BinaryNode[] | Uint8Array, attrs: Record<string, string> = {}): BinaryNode => ({
  tag,
  attrs,
  content,
});

async function scene() {
  const told: BinaryNode[] = [];
  const failures: string[] = [];
  const ref = node("link_code_pairing_ref", Buffer.from(REF));
  const code = new CodeLink({
    socket: {
      query(question) {
        told.push((question.content as BinaryNode[])[0]!);
        return Promise.resolve(node("iq", [node("link_code_companion_reg", [ref])]));
      },
      generateMessageTag: () => String(told.length),
      ws: new EventEmitter(),
    },
    auth: { creds: initAuthCreds(), saveCreds: () => Promise.resolve() },
    browser: Browsers.macOS("Chrome"),
    runtime: testRuntime(),
    failed: (reason) => void failures.push(reason),
  });
  await code.ask("4915100000001");
  const step = (attrs: Record<string, string>, { ref = REF, wrapped = 0 } = {}) =>
    node("link_code_companion_reg", [
      node("link_code_pairing_ref", Buffer.from(ref)),
      node("primary_identity_pub", Buffer.alloc(32, 9)),
      ...(wrapped ? [node("link_code_pairing_wrapped_primary_ephemeral_pub", Buffer.alloc(wrapped, 7))] : []),
    ], attrs);
  return { code, step, told, failures };
}

Deno.test("a code is asked for with WhatsApp Web's nonce, one zero byte", async () => {
  const { code, told } = await scene();
  const nonce = (told[0]!.content as BinaryNode[]).find(({ tag }) => tag === "link_code_pairing_nonce");
  assert.deepEqual([...nonce!.content as Uint8Array], [0]);
  code.stop();
});

Deno.test("only a refresh of the code that is shown makes a new one", async () => {
  const { code, step } = await scene();
  assert.equal(await code.take(step({ stage: "refresh_code" }, { ref: "2@another" })), false);
  assert.equal(await code.take(step({ stage: "refresh_code" })), true);
  await assert.rejects(code.take(step({ stage: "refresh_code", force_manual_refresh: "true" })), CodeExpired);
});

Deno.test("the phone is answered three times, each time with a fresh secret, and not without its key", async () => {
  const { code, step, told, failures } = await scene();
  const primaryHello = { stage: "primary_hello" };
  for (const wrapped of [0, 12]) await code.take(step(primaryHello, { wrapped }));
  assert.equal(told.length, 1);
  for (let i = 0; i < 4; i++) await code.take(step(primaryHello, { wrapped: 80 }));
  const finishes = told.slice(1);
  assert.deepEqual(finishes.map(({ attrs }) => attrs.stage), Array(3).fill("companion_finish"));
  const bundles = finishes.map(({ content }) => Buffer.from((content as BinaryNode[])[0]!.content as Uint8Array));
  assert.equal(new Set(bundles.map((bundle) => bundle.toString("hex"))).size, 3);
  assert.deepEqual(failures, ["The code was mistyped too often."]);
  code.stop();
});
