import assert from "node:assert/strict";
import { type BinaryNode, proto } from "@whiskeysockets/baileys";
import { leaveFiles } from "../../../../src/whatsapp/baileys/incoming/settings.ts";

const inline: BinaryNode = {
  tag: "patch",
  attrs: {},
  content: proto.SyncdPatch.encode({ mutations: [{ operation: 0 }] }).finish(),
};
const inFile: BinaryNode = {
  tag: "patch",
  attrs: {},
  content: proto.SyncdPatch.encode({ externalMutations: { directPath: "/v/file" } }).finish(),
};
const snapshot: BinaryNode = { tag: "snapshot", attrs: {}, content: new Uint8Array([1]) };

/** What is left of a collection's content, and whether the network is asked for more. */
function left(content: BinaryNode[]): { content: unknown; more: string | undefined } {
  const collection: BinaryNode = { tag: "collection", attrs: { name: "regular", has_more_patches: "true" }, content };
  leaveFiles({ tag: "iq", attrs: { type: "result" }, content: [{ tag: "sync", attrs: {}, content: [collection] }] });
  return { content: collection.content, more: collection.attrs.has_more_patches };
}

Deno.test("settings that come inline are left to the library", () => {
  for (const content of [[inline], [{ tag: "patches", attrs: {}, content: [inline, inline] }], []]) {
    assert.deepEqual(left(content), { content, more: "true" });
  }
});

Deno.test("settings that lie in files are not fetched, and not asked for again", () => {
  const patches = { tag: "patches", attrs: {}, content: [inline, inFile] };
  for (const content of [[snapshot], [snapshot, patches], [patches], [inFile]]) {
    assert.deepEqual(left(content), { content: [], more: undefined });
  }
});

Deno.test("what is no answer about settings stays as it is", () => {
  const stanza: BinaryNode = { tag: "iq", attrs: { type: "result" }, content: [{ tag: "list", attrs: {} }] };
  leaveFiles(stanza);
  assert.deepEqual(stanza.content, [{ tag: "list", attrs: {} }]);
});
