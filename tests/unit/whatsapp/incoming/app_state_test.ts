import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type BinaryNode, getBinaryNodeChildren, proto } from "@whiskeysockets/baileys";
import { saltPatch } from "../../../../src/sandbox/phone/welcome.ts";
import { makeReadOutside } from "../../../../src/inspect/inspector.ts";
import type { AuthState } from "../../../../src/whatsapp/baileys/auth_state.ts";
import { makeFileFilter, makeSettings } from "../../../../src/whatsapp/baileys/incoming/app_state.ts";
import type { MediaHost } from "../../../../src/whatsapp/baileys/media_host.ts";
import { uploaded } from "../../../support/media_server.ts";
import { ManualClock, settle, testRuntime } from "../../../support/runtime.ts";
import { until } from "../../../support/until.ts";

const KEY = { id: new Uint8Array([1, 2, 3, 4, 5, 6]), data: new Uint8Array(32).fill(9) };
const STRANGER = { ...KEY, data: new Uint8Array(32).fill(8) };
const SALT = Buffer.alloc(32, 7);
const { SET, REMOVE } = proto.SyncdMutation.SyncdOperation;

/** Whose time never ends, however slow the machine is. */
const patient = makeReadOutside({ clock: new ManualClock() })("acc_1");

function world({ hasKey = true } = {}) {
  const runtime = testRuntime();
  const rows = new Map<string, unknown>();
  if (hasKey) rows.set(`app-state-sync-key ${Buffer.from(KEY.id).toString("base64")}`, { keyData: KEY.data });
  const keys: AuthState["keys"] = {
    get: (type, ids) => Promise.resolve(Object.fromEntries(ids.map((id) => [id, rows.get(`${type} ${id}`)])) as never),
    set(data) {
      for (const [type, values] of Object.entries(data)) {
        for (const [id, value] of Object.entries(values!)) rows.set(`${type} ${id}`, value);
      }
      return Promise.resolve();
    },
  };
  const auth = {
    keys,
    idsOf: (type: string) =>
      Promise.resolve([...rows.keys()].filter((name) => name.startsWith(type)).map((name) => name.split(" ")[1]!)),
    get: <T>(type: string, id: string) => Promise.resolve((rows.get(`${type} ${id}`) ?? null) as T | null),
  };
  const files = new Map<string, Uint8Array>();
  const host = {
    addressOf: ({ directPath }) => new URL(directPath!, "https://media.test"),
    get: ({ pathname }) => {
      const bytes = files.get(pathname)!;
      return Promise.resolve({ status: 200, length: bytes.length, body: new Blob([bytes as BufferSource]).stream() });
    },
  } as Partial<MediaHost> as MediaHost;
  const asked: BinaryNode[] = [];
  const query = (node: BinaryNode) => Promise.resolve(void asked.push(node));
  const settings = makeSettings({ auth, host, readOutside: patient, query, runtime });
  return { settings, rows, files, asked, clock: runtime.clock, salt: () => rows.get("nct-salt salt") };
}

/** Puts a file where the host has it; the answer says where, and how to read it. */
async function put(files: Map<string, Uint8Array>, content: Uint8Array): Promise<proto.IExternalBlobReference> {
  const { file: { fileLength: fileSizeBytes, ...file }, bytes } = await uploaded(content, "md-app-state");
  const directPath = `/file-${files.size}`;
  files.set(directPath, bytes);
  return { ...file, directPath, fileSizeBytes };
}

const patch = (content: Uint8Array): BinaryNode => ({ tag: "patch", attrs: {}, content });
const answer = (content: BinaryNode[], name = "regular_high"): BinaryNode => ({
  tag: "iq",
  attrs: { type: "result" },
  content: [{ tag: "sync", attrs: {}, content: [{ tag: "collection", attrs: { name, version: "1" }, content }] }],
});
const bytes = (key = KEY) => saltPatch(key, SALT, testRuntime().random);
const mutationsOf = (encoded: Uint8Array) => proto.SyncdPatch.decode(encoded).mutations;

Deno.test("the salt is taken from a patch, also where that lies in a file, and from a snapshot", async () => {
  const mutations = mutationsOf(bytes());
  const content = async (files: Map<string, Uint8Array>): Promise<BinaryNode[][]> => [
    [patch(bytes())],
    [{ tag: "patches", attrs: {}, content: [patch(bytes())] }],
    [patch(
      proto.SyncdPatch.encode({
        externalMutations: await put(files, proto.SyncdMutations.encode({ mutations }).finish()),
      }).finish(),
    )],
    [{
      tag: "snapshot",
      attrs: {},
      content: proto.ExternalBlobReference.encode(
        await put(files, proto.SyncdSnapshot.encode({ records: [mutations[0]!.record!] }).finish()),
      ).finish(),
    }],
  ];
  for (let i = 0; i < 4; i++) {
    const { settings, files, salt } = world();
    settings.watch(answer((await content(files))[i]!));
    await until(salt, "the salt");
    assert.deepEqual(salt(), SALT, `form ${i}`);
  }
});

Deno.test("a salt that was taken back is forgotten, the last change counts", async () => {
  const { settings, salt } = world();
  const [set] = mutationsOf(bytes());
  const removed = proto.SyncdPatch.encode({ mutations: [{ ...set!, operation: REMOVE }] }).finish();
  settings.watch(answer([patch(bytes()), patch(removed)]));
  await settle();
  assert.equal(salt(), null);
  settings.watch(answer([patch(removed), patch(bytes())]));
  await settle();
  assert.deepEqual(salt(), SALT);
});

Deno.test("an answer whose file is slow does not undo the answer that followed it", async () => {
  const { settings, files, rows } = world();
  const [set] = mutationsOf(bytes());
  const snapshot = proto.SyncdSnapshot.encode({ records: [set!.record!] }).finish();
  const content = proto.ExternalBlobReference.encode(await put(files, snapshot)).finish();
  const removed = proto.SyncdPatch.encode({ mutations: [{ ...set!, operation: REMOVE }] }).finish();
  const taken: unknown[] = [];
  rows.set = (name, value) => {
    taken.push(value);
    return Map.prototype.set.call(rows, name, value);
  };
  settings.watch(answer([{ tag: "snapshot", attrs: {}, content }]));
  settings.watch(answer([patch(removed)]));
  await until(() => taken.length === 2, "both answers");
  assert.deepEqual(taken, [SALT, null]);
});

Deno.test("of what was altered, is under another key, in another collection or no setting at all, nothing is taken", async () => {
  const [set] = mutationsOf(bytes());
  const blob = set!.record!.value!.blob!;
  const altered = { ...set!.record!, value: { blob: blob.with(20, blob[20]! ^ 1) } };
  const spoilt = proto.SyncdPatch.encode({ mutations: [{ operation: SET, record: altered }] }).finish();
  for (const content of [spoilt, bytes(STRANGER), new Uint8Array([0xff, 1]), new Uint8Array(0)]) {
    const { settings, salt } = world();
    settings.watch(answer([patch(content)]));
    await settle();
    assert.equal(salt(), undefined);
  }
  const { settings, salt } = world();
  settings.watch(answer([patch(bytes())], "regular"));
  settings.watch({ tag: "iq", attrs: { type: "result" } });
  await settle();
  assert.equal(salt(), undefined);
  const keyless = world({ hasKey: false });
  keyless.settings.watch(answer([patch(bytes())]));
  await settle();
  assert.equal(keyless.salt(), undefined);
});

Deno.test("the network is asked once, and never where the salt is known", async () => {
  const { settings, asked } = world();
  await settings.ask();
  await settings.ask();
  assert.equal(asked.length, 1);
  const knowing = world();
  knowing.rows.set("nct-salt salt", SALT);
  await knowing.settings.ask();
  assert.equal(knowing.asked.length, 0);
});

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

/** What the library finds in a collection, and whether it asks the network for more. */
function left(content: BinaryNode[], { watch } = makeFileFilter()) {
  const collection: BinaryNode = { tag: "collection", attrs: { name: "regular", has_more_patches: "true" }, content };
  watch({ tag: "iq", attrs: { type: "result" }, content: [{ tag: "sync", attrs: {}, content: [collection] }] });
  const found = ["snapshot", "patches", "patch"].flatMap((tag) => getBinaryNodeChildren(collection, tag));
  return { found, more: collection.attrs.has_more_patches };
}

Deno.test("settings that come inline are left to the library", () => {
  for (const content of [[inline], [{ tag: "patches", attrs: {}, content: [inline, inline] }], []]) {
    assert.deepEqual(left(content), { found: content, more: "true" });
  }
});

Deno.test("settings that lie in files are fetched for work that needs them, else not, and not asked for again", async () => {
  const patches = { tag: "patches", attrs: {}, content: [inline, inFile] };
  for (const content of [[snapshot], [snapshot, patches], [patches], [inFile]]) {
    const filter = makeFileFilter();
    const wanted = await filter.withFiles(() => Promise.resolve(left(content, filter)));
    assert.deepEqual(wanted, { found: content, more: "true" });
    assert.deepEqual(left(content, filter), { found: [], more: undefined });
  }
});

Deno.test("what is no answer about settings stays as it is", () => {
  const stanza: BinaryNode = { tag: "iq", attrs: { type: "result" }, content: [{ tag: "list", attrs: {} }] };
  makeFileFilter().watch(stanza);
  assert.deepEqual(stanza.content, [{ tag: "list", attrs: {} }]);
});

Deno.test("a file of a million tiny records is read elsewhere, and a part that belongs into a file not at all", async () => {
  const { settings, files, clock, salt } = world();
  const mutations = [...mutationsOf(bytes())];
  const tiny = Buffer.alloc(2_000_000, Buffer.from([0x0a, 0]));
  const content = Buffer.concat([tiny, proto.SyncdMutations.encode({ mutations }).finish()]);
  const externalMutations = await put(files, content);
  settings.watch(answer([patch(Buffer.concat([bytes(), Buffer.alloc(200_000, Buffer.from([0x12, 0]))]))]));
  settings.watch(answer([patch(proto.SyncdPatch.encode({ externalMutations }).finish())]));
  settings.watch(answer([patch(bytes())]));
  // Its download pauses.
  await until(() => clock.advance(10).then(salt), "the salt");
  assert.deepEqual(salt(), SALT);
});
