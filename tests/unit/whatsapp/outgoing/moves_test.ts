/** What is asked, stored and dropped when a person has another LID than before. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { EventEmitter } from "node:events";
import type { BinaryNode } from "@whiskeysockets/baileys";
import { takeMoves } from "../../../../src/whatsapp/baileys/outgoing/moves.ts";
import { settle, testRuntime } from "../../../support/runtime.ts";

const NUMBER = "4917000000001@s.whatsapp.net";
const [OLD, NEW] = ["111@lid", "222@lid"];

function world({ answer = NEW }: { answer?: string | null } = {}) {
  const asked: BinaryNode[] = [];
  const done: unknown[] = [];
  const ws = new EventEmitter();
  const user = { tag: "user", attrs: { jid: NUMBER }, content: answer ? [{ tag: "lid", attrs: { val: answer } }] : [] };
  const reply = { tag: "usync", attrs: {}, content: [{ tag: "list", attrs: {}, content: [user] }] };
  const socket = {
    ws,
    generateMessageTag: () => "tag",
    query(node: BinaryNode) {
      asked.push(node);
      return Promise.resolve({ tag: "iq", attrs: {}, content: [reply] });
    },
    signalRepository: {
      deleteSession: (jids: string[]) => Promise.resolve(void done.push({ sessions: jids })),
      lidMapping: { storeLIDPNMappings: (pairs: unknown[]) => Promise.resolve(void done.push({ pairs })) },
    },
    authState: {
      keys: {
        get: () => Promise.resolve({ "111": ["3"] }),
        set: (rows: unknown) => Promise.resolve(void done.push(rows)),
      },
    },
  };
  const moves = takeMoves({
    socket: socket as never,
    addressing: {
      numberOf: (jid) => Promise.resolve(jid === OLD ? NUMBER : jid),
      lidOf: (jid) => Promise.resolve(jid === NUMBER ? OLD : jid),
    },
    devices: { forget: (jid) => Promise.resolve(void done.push({ devices: jid })) },
    runtime: testRuntime(),
  });
  return { moves, ws, asked, done };
}

const MOVED = [
  { devices: OLD },
  { sessions: ["111:0@lid", "111:3@lid"] },
  { "device-list": { "111": null } },
  { pairs: [{ lid: NEW, pn: NUMBER }] },
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

Deno.test("a notification moves a person whose number is known; a malformed one is ignored", async () => {
  const { ws, asked, done } = world();
  const tell = async (data: unknown, op_name = "LidChangeNotification") => {
    const update = { tag: "update", attrs: { op_name }, content: Buffer.from(JSON.stringify({ data })) };
    ws.emit("CB:notification", { tag: "notification", attrs: { type: "mex" }, content: [update] });
    await settle();
  };
  await tell({ xwa2_notify_lid_change: { old: "333@lid", new: NEW } });
  for (const data of [null, {}, { xwa2_notify_lid_change: { old: 1, new: NEW } }]) await tell(data);
  await tell({ xwa2_notify_lid_change: { old: OLD, new: NEW } }, "Another");
  assert.deepEqual(done, []);
  await tell({ xwa2_notify_lid_change: { old: OLD, new: NEW } });
  assert.deepEqual([asked, done], [[], MOVED]);
});
