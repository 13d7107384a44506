/** Credentials and Signal keys in the store: sealed, atomic, cached, and gone when the line is forgotten. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Curve, proto } from "@whiskeysockets/baileys";
import { openDenoKv } from "../../../src/store/deno_kv/deno_kv.ts";
import { networkKeys } from "../../../src/whatsapp/baileys/rows.ts";
import { StoreError } from "../../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";
import { forgetLine, isLinked, openAuthState, readLink } from "../../../src/whatsapp/baileys/auth_state.ts";
import { type FailingKv, failingKv } from "../../support/failing_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

const runtime = testRuntime();
const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
const lineId = "ses_1";

async function withStore(play: (kv: FailingKv) => Promise<void>): Promise<void> {
  const kv = failingKv(await openDenoKv(":memory:", { runtime }));
  try {
    await play(kv);
  } finally {
    kv.close();
  }
}

function linkedAs(id: string) {
  return { me: { id }, account: { details: Buffer.from([1]) } as proto.IADVSignedDeviceIdentity };
}

Deno.test("credentials come back as they were, byte for byte", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    Object.assign(auth.creds, linkedAs("551@s.whatsapp.net"));
    await auth.saveCreds();
    const again = await openAuthState({ kv, seal, lineId });
    assert.deepEqual(again.creds.noiseKey, auth.creds.noiseKey);
    assert.deepEqual(again.creds.signedPreKey, auth.creds.signedPreKey);
    assert.equal(again.creds.advSecretKey, auth.creds.advSecretKey);
    assert.ok(isLinked(again.creds));
  }));

Deno.test("credentials of a link that was not completed are not used again", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    // A link by code knows the number before the phone has answered.
    auth.creds.me = { id: "551@s.whatsapp.net" };
    await auth.saveCreds();
    const again = await openAuthState({ kv, seal, lineId });
    assert.equal(again.creds.me, undefined);
    assert.notDeepEqual(again.creds.noiseKey, auth.creds.noiseKey);
  }));

Deno.test("nothing at rest shows a key", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    const pair = Curve.generateKeyPair();
    await auth.saveCreds();
    await auth.keys.set({ "pre-key": { "1": pair } });
    const secrets = [auth.creds.noiseKey.private, auth.creds.signedIdentityKey.private, pair.private];
    for await (const row of kv.list<unknown>({ prefix: networkKeys.waLine(lineId) })) {
      const bytes = Buffer.from(row.value as Uint8Array);
      for (const secret of secrets) {
        assert.equal(bytes.includes(Buffer.from(secret)), false);
        assert.equal(bytes.includes(Buffer.from(secret).toString("base64")), false);
      }
    }
    const stranger = makeSeal(sealKey("another secret"), runtime.random);
    await assert.rejects(readLink({ kv, seal: stranger, lineId }), { name: "SealError" });
  }));

Deno.test("credentials that have not changed are not written again", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    await Promise.all([auth.saveCreds(), auth.saveCreds()]);
    await auth.saveCreds();
    assert.equal(kv.commits.length, 1);
    auth.creds.nextPreKeyId++;
    await auth.saveCreds();
    assert.equal(kv.commits.length, 2);
  }));

Deno.test("one set is one commit, 812 pre-keys as well", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    const pair = Curve.generateKeyPair();
    const ids = Array.from({ length: 812 }, (_, i) => String(i + 1));
    await auth.keys.set({
      "pre-key": Object.fromEntries(ids.map((id) => [id, pair])),
      "lid-mapping": { "551": "900" },
    });
    assert.equal(kv.commits.length, 1);
    const found = await auth.keys.get("pre-key", ids);
    assert.deepEqual(Object.keys(found), ids);
    assert.deepEqual(found["812"]?.private, Buffer.from(pair.private));
  }));

Deno.test("what is deleted is gone, and what was never there is absent", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    await auth.keys.set({ "lid-mapping": { "551": "900" } });
    await auth.keys.set({ "lid-mapping": { "551": null } });
    assert.deepEqual(await auth.keys.get("lid-mapping", ["551", "552"]), {});
    assert.deepEqual(await (await openAuthState({ kv, seal, lineId })).keys.get("lid-mapping", ["551"]), {});
  }));

Deno.test("a value that the library changes in place does not change what is kept", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    const jids = { "1:2@lid": true };
    await auth.keys.set({ "sender-key-memory": { group: jids } });
    const { group } = await auth.keys.get("sender-key-memory", ["group"]);
    group!["3:4@lid"] = true;
    assert.deepEqual(await auth.keys.get("sender-key-memory", ["group"]), { group: jids });
    await auth.keys.set({ "sender-key-memory": { group: group! } });
    const again = await openAuthState({ kv, seal, lineId });
    assert.deepEqual(await again.keys.get("sender-key-memory", ["group"]), { group });
  }));

Deno.test("a value that is written as it stands costs no commit", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    await auth.keys.set({ "device-list": { "551": ["0", "1"] } });
    await auth.keys.set({ "device-list": { "551": ["0", "1"] } });
    assert.equal(kv.commits.length, 1);
  }));

Deno.test("app-state keys come back as the library's own message", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    const keyData = proto.Message.AppStateSyncKeyData.fromObject({ keyData: Buffer.from([1, 2, 3]) });
    await auth.keys.set({ "app-state-sync-key": { AAA: keyData } });
    const { AAA } = await (await openAuthState({ kv, seal, lineId })).keys.get("app-state-sync-key", ["AAA"]);
    assert.deepEqual(Buffer.from(AAA!.keyData!), Buffer.from([1, 2, 3]));
  }));

Deno.test("values over 64 KiB are kept", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    const big = Buffer.alloc(300_000, 7);
    await auth.keys.set({ "sender-key": { big } });
    const { big: found } = await (await openAuthState({ kv, seal, lineId })).keys.get("sender-key", ["big"]);
    assert.deepEqual(found, big);
  }));

Deno.test("what was read before a write and arrives after it does not stay in the cache", () =>
  withStore(async (kv) => {
    const session = { old: Buffer.from("old"), new: Buffer.from("new") };
    await (await openAuthState({ kv, seal, lineId })).keys.set({ session: { "111.0": session.old } });
    const auth = await openAuthState({ kv, seal, lineId });
    const read = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const { getMany } = kv;
    kv.getMany = async (wanted) => {
      const slots = await getMany(wanted);
      read.resolve();
      await goOn.promise;
      return slots;
    };
    const slow = auth.keys.get("session", ["111.0"]);
    await read.promise;
    kv.getMany = getMany;
    await auth.keys.set({ session: { "111.0": session.new } });
    goOn.resolve();
    await slow;
    assert.deepEqual(await auth.keys.get("session", ["111.0"]), { "111.0": session.new });
  }));

Deno.test("a set that fails leaves the old value, in the store and in the cache", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    await auth.keys.set({ "lid-mapping": { "551": "900" } });
    kv.fails = () => true;
    await assert.rejects(
      async () => await auth.keys.set({ "lid-mapping": { "551": "901", "552": "902" } }),
      StoreError,
    );
    kv.fails = () => false;
    assert.deepEqual(await auth.keys.get("lid-mapping", ["551", "552"]), { "551": "900" });
  }));

Deno.test("a row of a name that no row can have is no trouble of the store's", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    await assert.rejects(
      async () => await auth.keys.get("sender-key", ["1".repeat(3_000)]),
      (error) => !(error instanceof StoreError),
    );
    assert.equal(auth.refusedReads, 0);
  }));

Deno.test("credentials that could not be written are written with the next change", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    Object.assign(auth.creds, linkedAs("551@s.whatsapp.net"));
    kv.fails = () => true;
    await assert.rejects(auth.saveCreds(), StoreError);
    kv.fails = () => false;
    await auth.saveCreds();
    assert.ok(await readLink({ kv, seal, lineId }));
  }));

Deno.test("after close nothing is written any more", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    await auth.keys.set({ "lid-mapping": { "551": "900" } });
    await auth.close();
    await assert.rejects(async () => await auth.keys.set({ "lid-mapping": { "551": "901" } }), StoreError);
    assert.deepEqual(await (await openAuthState({ kv, seal, lineId })).keys.get("lid-mapping", ["551"]), {
      "551": "900",
    });
  }));

Deno.test("forgetting a line drops all of its rows and none of another's", () =>
  withStore(async (kv) => {
    for (const line of [lineId, "ses_2"]) {
      const auth = await openAuthState({ kv, seal, lineId: line });
      Object.assign(auth.creds, linkedAs("551@s.whatsapp.net"));
      await auth.saveCreds();
      await auth.keys.set({
        "lid-mapping": Object.fromEntries(Array.from({ length: 900 }, (_, i) => [String(i), "x"])),
      });
    }
    await forgetLine(kv, lineId);
    assert.equal(await readLink({ kv, seal, lineId }), null);
    for await (const row of kv.list({ prefix: networkKeys.waLine(lineId) })) assert.fail(`left: ${row.key.join("/")}`);
    assert.notEqual(await readLink({ kv, seal, lineId: "ses_2" }), null);
  }));

Deno.test("a session that waits for another commit's flush says so, and other keys do not wait", () =>
  withStore(async (kv) => {
    const auth = await openAuthState({ kv, seal, lineId });
    const lingering: boolean[] = [];
    const { commit } = kv;
    kv.commit = (change, options) => {
      lingering.push(options?.lingerUntil !== undefined);
      return commit(change, options);
    };
    let waiting = 0;
    await auth.lingering({ until: Promise.resolve(), waits: () => waiting++ }, async () => {
      await auth.keys.set({ session: { "111.0": Buffer.from("new") } });
      await auth.keys.set({ "lid-mapping": { "551": "900" } });
    });
    await auth.keys.set({ session: { "111.0": Buffer.from("newer") } });
    assert.deepEqual(lingering, [true, false, false]);
    assert.equal(waiting, 1);
  }));
