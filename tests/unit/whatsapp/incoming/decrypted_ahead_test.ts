/** What is decrypted before the library comes to it, and what is left to its turn. */
import assert from "node:assert/strict";
import type { BinaryNode } from "@whiskeysockets/baileys";
import { makeDecryptedAhead } from "../../../../src/whatsapp/baileys/incoming/decrypted_ahead.ts";
import { settle } from "../../../support/runtime.ts";

const ANA = "111@lid";
const BEN = "222@lid";

interface Said {
  from?: string;
  attrs?: Record<string, string>;
  type?: string;
}

function said(text: string, { from = ANA, attrs = {}, type = "msg" }: Said = {}) {
  const ciphertext = new TextEncoder().encode(text);
  const enc = { tag: "enc", attrs: { v: "2", type }, content: ciphertext };
  const stanza: BinaryNode = { tag: "message", attrs: { id: text, from, ...attrs }, content: [enc] };
  return { stanza, ciphertext };
}

/** Texts are their own ciphertexts. `refused`: those that cannot be decrypted ahead. */
function world({ refused = [], lids = {} }: { refused?: string[]; lids?: Record<string, string> } = {}) {
  const opened: string[] = [];
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const ahead = makeDecryptedAhead({
    lidMapping: { getLIDForPN: (pn) => Promise.resolve(lids[pn] ?? null) },
    decrypt: ({ jid, ciphertext }, within) =>
      within(() => {
        if (refused.includes(text(ciphertext))) return Promise.reject(new Error("no session"));
        opened.push(`${text(ciphertext)} of ${jid}`);
        return Promise.resolve(ciphertext);
      }),
  });
  /** The library comes to the message. */
  const take = async ({ stanza, ciphertext }: ReturnType<typeof said>) => {
    await ahead.take(ciphertext, stanza, () => {
      opened.push(`${text(ciphertext)} in turn`);
      return Promise.resolve(ciphertext);
    });
  };
  return { ahead, opened, take };
}

Deno.test("messages of people are decrypted when they arrive, and once", async () => {
  const { ahead, opened, take } = world();
  const all = [said("a"), said("b", { from: BEN }), said("c", { type: "pkmsg" })];
  for (const { stanza } of all) ahead.begin(stanza);
  await settle();
  assert.deepEqual(opened, ["a of 111@lid", "b of 222@lid", "c of 111@lid"]);
  for (const one of all) await take(one);
  assert.equal(opened.length, 3);
});

Deno.test("nothing overtakes a message of its chat that waits for the library, and other chats do not wait", async () => {
  const { ahead, opened, take } = world({ refused: ["a"] });
  const [a, b, c] = [said("a"), said("b"), said("c", { from: BEN })];
  for (const { stanza } of [a, b, c]) ahead.begin(stanza);
  await settle();
  const late = said("d");
  ahead.begin(late.stanza);
  await settle();
  assert.deepEqual(opened, ["c of 222@lid"]);
  for (const one of [a, b, late]) await take(one);
  assert.deepEqual(opened.slice(1), ["a in turn", "b in turn", "d in turn"]);
  ahead.begin(said("e").stanza);
  await settle();
  assert.equal(opened.at(-1), "e of 111@lid");
});

const LEFT: Record<string, Said> = {
  "in a group": { from: "1-2@g.us", attrs: { participant: ANA } },
  "of the owner's own device": { attrs: { recipient: BEN } },
  "to the line's devices": { attrs: { category: "peer" } },
  "with a group's key": { type: "skmsg" },
  "under an id that no app chooses": { attrs: { id: "x@y" } },
  "under an endless id": { attrs: { id: "x".repeat(300) } },
  "of a sender whose session is to be moved": { from: "49@s.whatsapp.net", attrs: { sender_lid: ANA } },
};
for (const [name, message] of Object.entries(LEFT)) {
  Deno.test(`a message ${name} is left to the library`, async () => {
    const { ahead, opened, take } = world();
    const one = said("a", message);
    ahead.begin(one.stanza);
    await settle();
    assert.deepEqual(opened, []);
    await take(one);
    assert.deepEqual(opened, ["a in turn"]);
  });
}

Deno.test("a number's session is that of its LID once that is known", async () => {
  const { ahead, opened } = world({ lids: { "49@s.whatsapp.net": "333@lid" } });
  ahead.begin(said("a", { from: "49@s.whatsapp.net", attrs: { sender_lid: "333@lid" } }).stanza);
  ahead.begin(said("b", { from: "50@s.whatsapp.net" }).stanza);
  await settle();
  assert.deepEqual(opened, ["a of 333@lid", "b of 50@s.whatsapp.net"]);
});
