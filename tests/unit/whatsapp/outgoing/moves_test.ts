/** What is asked, stored and dropped when a person has another LID than before. */
import assert from "node:assert/strict";
import type { BinaryNode } from "@whiskeysockets/baileys";
import { makeMoves } from "../../../../src/whatsapp/baileys/outgoing/moves.ts";
import { testRuntime } from "../../../support/runtime.ts";

const NUMBER = "4917000000001@s.whatsapp.net";
const [OLD, NEW] = ["111@lid", "222@lid"];

function world({ answer = NEW }: { answer?: string | null } = {}) {
  const asked: BinaryNode[] = [];
  const done: unknown[] = [];
  const user = { tag: "user", attrs: { jid: NUMBER }, content: answer ? [{ tag: "lid", attrs: { val: answer } }] : [] };
  const reply = { tag: "usync", attrs: {}, content: [{ tag: "list", attrs: {}, content: [user] }] };
  const socket = {
    generateMessageTag: () => "tag",
    query(node: BinaryNode) {
      asked.push(node);
      return Promise.resolve({ tag: "iq", attrs: {}, content: [reply] });
    },
    signalRepository: {
      deleteSession: (jids: string[]) => Promise.resolve(void done.push({ sessions: jids })),
      lidMapping: { storeLIDPNMappings: (pairs: unknown[]) => Promise.resolve(void done.push({ pairs })) },
    },
  };
  const moves = makeMoves({
    socket: socket as never,
    keys: {
      get: () => Promise.resolve({ "111": ["3"] }),
      set: (rows: unknown) => Promise.resolve(void done.push(rows)),
    } as never,
    moved: (old, lid) => done.push({ old, lid }),
    addressing: {
      numberOf: (jid) => Promise.resolve(jid === OLD ? NUMBER : jid),
      lidOf: (jid) => Promise.resolve(jid === NUMBER ? OLD : jid),
    },
    devices: { forget: (jid) => Promise.resolve(void done.push({ devices: jid })) },
    runtime: testRuntime(),
  });
  return { moves, asked, done };
}

const MOVED = [
  { devices: OLD },
  { sessions: ["111:0@lid", "111:3@lid"] },
  { "device-list": { "111": null }, "new-lid": { "111": NEW, "222": null } },
  { pairs: [{ lid: NEW, pn: NUMBER }] },
  { old: OLD, lid: NEW },
];

Deno.test("the network is asked once per number who has it, and the old LID's devices and sessions are dropped", async () => {
  const { moves, asked, done } = world();
  for (const chat of [OLD, OLD, NUMBER]) await moves.look(chat);
  assert.deepEqual(asked, [{
    tag: "iq",
    attrs: { to: "@s.whatsapp.net", type: "get", xmlns: "usync" },
    content: [{
      tag: "usync",
      attrs: { context: "background", mode: "query", sid: "tag", last: "true", index: "0" },
      content: [
        { tag: "query", attrs: {}, content: [{ tag: "lid", attrs: {} }] },
        { tag: "list", attrs: {}, content: [{ tag: "user", attrs: { jid: NUMBER } }] },
      ],
    }],
  }]);
  assert.deepEqual(done, MOVED);
});

Deno.test("nothing changes where the number is unknown, or the answer names no other LID", async () => {
  for (const [answer, chat] of [[NEW, "333@lid"], [NEW, "1-2@g.us"], [OLD, OLD], [null, OLD]] as const) {
    const { moves, asked, done } = world({ answer });
    await moves.look(chat);
    assert.deepEqual([asked.length, done], [chat === OLD ? 1 : 0, []]);
  }
});

Deno.test("a person moves whose number is unknown; nothing is done if it is the same LID", async () => {
  const { moves, asked, done } = world();
  await moves.take(NEW, NEW);
  assert.deepEqual(done, []);
  await moves.take("333@lid", NEW);
  assert.deepEqual([asked, done], [[], [
    { devices: "333@lid" },
    { sessions: ["333:0@lid"] },
    { "device-list": { "333": null }, "new-lid": { "333": NEW, "222": null } },
    { old: "333@lid", lid: NEW },
  ]]);
});
