/** What acknowledges a stanza names it as its sender did, whatever that is. */
import assert from "node:assert/strict";
import { decodeBinaryNode, encodeBinaryNode } from "@whiskeysockets/baileys";
import * as constants from "@whiskeysockets/baileys/lib/WABinary/constants.js";
import { encodePlainly, isMistaken, repairTokens } from "../../../src/whatsapp/baileys/stanza.ts";

/** What the other side reads of these attributes, once the library's table of short forms is repaired. */
async function readBack(
  attrs: Record<string, string>,
  { repair = repairTokens } = {},
): Promise<Record<string, string>> {
  const tokens = { ...constants.TOKEN_MAP };
  repair(tokens);
  const bytes = encodeBinaryNode({ tag: "ack", attrs }, { ...constants, TOKEN_MAP: tokens });
  return { ...(await decodeBinaryNode(bytes)).attrs };
}

for (const id of ["constructor", "toString", "__proto__", "3EB0A0", "a|b", "\0"]) {
  Deno.test(`the id ${JSON.stringify(id)} is written as it is read`, async () => {
    const attrs = { id, to: "222@lid", class: "message" };
    assert.deepEqual(await readBack(attrs), attrs);
  });
}

Deno.test("the library by itself writes another id: when this fails, the repair has become needless", async () => {
  const written = readBack({ id: "constructor", to: "222@lid" }, { repair: () => {} });
  assert.notEqual(await written.then(({ id }) => id, () => null), "constructor");
});

for (const id of ["3EB0@s.whatsapp.net", "a:5@b", "a_1@b", "@", "é@", `${"x".repeat(300)}@`]) {
  for (const type of ["read", "text@b:1"]) {
    Deno.test(`the id ${id.slice(-20)} and the type ${type} are no addresses`, async () => {
      const attrs = { id, to: "222:3@lid", class: "receipt", type };
      assert.ok(isMistaken({ tag: "receipt", attrs }));
      const { attrs: read } = await decodeBinaryNode(encodePlainly({ tag: "ack", attrs }));
      assert.deepEqual({ ...read }, attrs);
    });
  }
}

Deno.test("a stanza of usual names is left to the library", () => {
  assert.equal(isMistaken({ tag: "message", attrs: { id: "3EB0A0", from: "222@lid", type: "text" } }), false);
});
