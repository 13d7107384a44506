/** What has an id that no app makes is acknowledged by that id, and seen by nobody: else it would come for ever. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { type BinaryNode, decodeBinaryNode } from "@whiskeysockets/baileys";
import { type StraysOptions, takeStrays } from "../../../../src/whatsapp/baileys/incoming/strays.ts";
import { testRuntime } from "../../../support/runtime.ts";

/** A socket whose library listens for stanzas; `sent` are the stanzas that the network reads. */
function listening() {
  const ws = new EventEmitter();
  const seen: string[] = [];
  const sent: Promise<BinaryNode>[] = [];
  for (const tag of ["message", "receipt", "call"]) {
    ws.on(`CB:${tag}`, ({ attrs }: BinaryNode) => void seen.push(attrs.id!));
  }
  const socket = {
    ws,
    sendNode: (node: BinaryNode) => Promise.resolve(void sent.push(Promise.resolve(node))),
    sendRawMessage: (bytes: Uint8Array) => Promise.resolve(void sent.push(decodeBinaryNode(bytes as never))),
  } as unknown as StraysOptions["socket"];
  const creds = { me: { id: "551:3@s.whatsapp.net" } } as StraysOptions["creds"];
  takeStrays({ socket, creds, count: () => {}, log: testRuntime().log });
  return { ws, seen, sent };
}

for (const tag of ["message", "receipt", "call"]) {
  Deno.test(`a ${tag} that is named as an address is acknowledged by that name`, async () => {
    const { ws, seen, sent } = listening();
    const attrs = { from: "222@lid", type: "x" };
    for (const id of ["a:5@b", "3EB0A0"]) ws.emit(`CB:${tag}`, { tag, attrs: { ...attrs, id } });
    assert.deepEqual(seen, ["3EB0A0"]);
    const [ack, ...more] = await Promise.all(sent);
    assert.deepEqual([ack!.tag, ack!.attrs.id, ack!.attrs.class, ack!.attrs.to], ["ack", "a:5@b", tag, "222@lid"]);
    assert.deepEqual(more, []);
  });
}
