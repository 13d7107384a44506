/** The contract of the port to the network, on Baileys; and what only this engine can show. */
import assert from "node:assert/strict";
import { Curve, proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import { element } from "../../src/sandbox/world/stanza.ts";
import { networkKeys } from "../../src/whatsapp/baileys/rows.ts";
import { Change, type Kv } from "../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../src/store/seal.ts";
import { baileysNetwork } from "../../src/whatsapp/baileys/network.ts";
import {
  connectionContract,
  type EngineOptions,
  scanning,
  type Scene,
  send,
  text,
  withScene,
} from "../support/connection_suite.ts";
import type { LineEvents } from "../support/line_events.ts";
import { UNHEARD } from "../support/unheard.ts";
import { until } from "../support/until.ts";

/** Baileys on a store in the test's folder. */
async function openBaileys(
  { simulated, runtime, folder }: EngineOptions,
  { rootKey = simulated.rootKey }: { rootKey?: string } = {},
) {
  const ca = `${folder}/ca.pem`;
  await Deno.writeTextFile(ca, simulated.caPem);
  const kv = await openDenoKv(`${folder}/store/kv.sqlite3`, { runtime });
  const { url, mediaUrl } = simulated;
  const whatsapp = { url, rootKey, mediaUrl, ca, version: null };
  const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
  const network = baileysNetwork({ ...UNHEARD, runtime, kv, storeOf: () => kv, seal, whatsapp });
  return {
    network,
    kv,
    close: () => {
      kv.close();
      return Promise.resolve();
    },
  };
}

connectionContract("Baileys", (options) => openBaileys(options));

/** A root key that no network of these tests has. */
const STRANGE_ROOT = Buffer.from(Curve.generateKeyPair().public).toString("hex");

Deno.test({
  name: "Baileys: a network of another root key gets no QR out of a line, and no log-in",
  sanitizeOps: false,
  sanitizeResources: false,
  fn: () => {
    let rootKey: string | undefined = STRANGE_ROOT;
    return withScene((options) => openBaileys(options, { rootKey }), async (scene) => {
      const stranger = await scene.open();
      assert.equal((await stranger.events.until("closed")).reason.kind, "untrusted");
      assert.deepEqual(stranger.events.all.map(({ event }) => event), ["closed"]);

      rootKey = undefined;
      await scene.restart();
      await scene.login();
      rootKey = STRANGE_ROOT;
      await scene.restart();
      const { events } = await scene.open();
      assert.equal((await events.until("closed")).reason.kind, "untrusted");
      assert.deepEqual(events.all.map(({ event }) => event), ["closed"]);
      assert.equal(await scene.network.isLinked(LINE), true, "the link is kept for when the network is back");
    });
  },
});

const LINE = "ses_contract";
const OWNER = "5511900000001";
const FRIEND = "5511900000002";

/** A test that looks into the store between two lives of the line. */
function testWithStore(name: string, play: (scene: Scene, kv: () => Kv) => Promise<void>): void {
  let kv: Kv;
  const open = async (options: EngineOptions) => {
    const engine = await openBaileys(options);
    kv = engine.kv;
    return engine;
  };
  const fn = () => withScene(open, (scene) => play(scene, () => kv));
  Deno.test({ name: `Baileys: ${name}`, fn, sanitizeOps: false, sanitizeResources: false });
}

/** Drops the line's keys of one type. */
async function deletionOf(kv: Kv, type: string): Promise<Change> {
  const change = new Change();
  for await (const row of kv.list({ prefix: networkKeys.waKeysOf(LINE, type) })) change.delete(row.key);
  return change;
}

testWithStore("a link whose account signature is forged is refused, and links nothing", async (scene) => {
  const { sign } = Curve;
  const stranger = Curve.generateKeyPair();
  // Somebody who saw the QR, and so knows its secret, but does not have the account's key.
  Curve.sign = (key, message) => sign(message[0] === 6 && message[1] === 0 ? stranger.private : key, message);
  try {
    const { events } = await scene.open({ events: scanning(scene.owner) });
    assert.equal((await events.until("closed")).reason.kind, "untrusted");
    assert.deepEqual(events.of("linked"), []);
  } finally {
    Curve.sign = sign;
  }
  assert.equal(await scene.network.isLinked(LINE), false);
  const { account } = scene.simulated.switchboard.directory.resolve(`${OWNER}@s.whatsapp.net`)!;
  assert.equal(account.companions.size, 0, "the network was not told that the line is linked");
});

/** A line that made itself a new sender key for a group and takes it that the members have it: they can't read it. */
async function withLostSenderKey(scene: Scene, kv: () => Kv) {
  const { switchboard } = scene.simulated;
  const participants = [OWNER, FRIEND].map((number) =>
    switchboard.directory.resolve(`${number}@s.whatsapp.net`)!.account
  );
  const { jid: group } = switchboard.groupChanges.create({ subject: "Team", participants, addressing: "lid" });
  const { connection, events } = await scene.login();
  await send(connection, { networkId: "3EB0F2", to: group, body: text("two") });
  await scene.arrival(scene.friend, ({ id }) => id === "3EB0F2");
  await scene.friend.sendMessage({ to: group, text: "by a friend" });
  const { message: friends } = await events.until("message");
  await scene.restart();
  await kv().commit(await deletionOf(kv(), "sender-key"));
  const again = await scene.open();
  await again.events.until("open");
  return { connection: again.connection, group, friends };
}

testWithStore("each receiver that could not decrypt gets the message again, alone", async (scene, kv) => {
  const { connection, group } = await withLostSenderKey(scene, kv);
  assert.equal((await send(connection, { networkId: "3EB0F3", to: group, body: text("three") }, kv())).kind, "sent");
  for (const phone of [scene.friend, scene.owner]) {
    assert.equal((await scene.arrival(phone, ({ id }) => id === "3EB0F3")).text, "three");
  }
  const wire = scene.simulated.switchboard.wire.entries(OWNER).filter(({ id }) => id === "3EB0F3");
  assert.deepEqual(wire.map(({ retry }) => retry), [undefined, true, true], "both asked for it");
});

testWithStore("an admin's deletion that has to be sent again is one for the network, too", async (scene, kv) => {
  const { connection, group, friends: { networkId, participant } } = await withLostSenderKey(scene, kv);
  const body = { kind: "revoke", target: { networkId, participant, fromMe: false } } as const;
  assert.equal((await send(connection, { networkId: "3EB0F5", to: group, body }, kv())).kind, "sent");
  await scene.arrival(scene.owner, ({ id, revoked }) => id === networkId && revoked);
});

testWithStore("a message that did not decrypt is asked for again, and arrives once", async (scene, kv) => {
  const { connection, events } = await scene.login();
  await send(connection, { networkId: "3EB0F4", to: FRIEND, body: text("hello") });
  await scene.friend.sendMessage({ to: OWNER, text: "readable" });
  await events.until("message");
  await scene.restart();
  await kv().commit(await deletionOf(kv(), "session"));
  const again = await scene.open();
  await again.events.until("open");
  await scene.friend.sendMessage({ to: OWNER, text: "not at first" });
  const { message } = await again.events.until("message");
  assert.equal(message.text, "not at first");
  assert.equal(message.undecryptable, false);
  await scene.clock.advance(120_000);
  assert.equal(again.events.of("message").length, 1, "and is not reported as lost besides");
});

testWithStore("a setting in a file of a host that does not answer holds up nothing", async (scene) => {
  const { connection } = await scene.login();
  const account = scene.simulated.switchboard.directory.account(OWNER)!;
  const [companion] = account.companions.values();
  const patch = { version: { version: 1 }, externalMutations: { directPath: "/v/file", mediaKey: new Uint8Array(32) } };
  account.settings.set("critical_block", [proto.SyncdPatch.encode(patch).finish()]);
  const attrs = { id: "N1", from: "s.whatsapp.net", type: "server_sync", t: "1790000000" };
  const changed = element("notification", attrs, [element("collection", { name: "critical_block", version: "1" })]);
  const { fetch } = globalThis;
  globalThis.fetch = (to, init) => String(to).includes("mmg.whatsapp.net") ? new Promise(() => {}) : fetch(to, init);
  try {
    companion!.mailbox.put(changed);
    await until(() => !companion!.mailbox.holds(changed), "the ack of the notification");
    assert.equal((await send(connection, { networkId: "3EB0F6", to: FRIEND, body: text("hello") })).kind, "sent");
  } finally {
    globalThis.fetch = fetch;
  }
});

/** A line whose first message is taken only when the test says so, so that the second waits behind it. */
async function withTwoWaiting(scene: Scene, kv: Kv) {
  const { events } = await scene.login();
  const { promise: taken, resolve: take } = Promise.withResolvers<void>();
  events.onMessage = ({ text }) => text === "one" ? taken : Promise.resolve();
  const ids: string[] = [];
  for (const text of ["one", "two"]) ids.push((await scene.friend.sendMessage({ to: OWNER, text })).id);
  await events.until("message");
  const rows = () => Array.fromAsync(kv.list({ prefix: networkKeys.waLine(LINE) }));
  const journal = () => Array.fromAsync(kv.list({ prefix: networkKeys.waKeysOf(LINE, "journal") }));
  await until(async () => {
    // What the owner's phone tells the device is in the journal too.
    const parts = (await journal()).map(({ key }) => String(key.at(-1)));
    return ids.every((id) => parts.some((part) => part.includes(id)));
  }, "both in the journal");
  return { events, take, rows, texts: () => events.of("message").map(({ message }) => message.text) };
}

/** The network ends the link; resolves when the line was told. */
async function unlinkedByPhone(scene: Scene, events: LineEvents): Promise<void> {
  const { switchboard } = scene.simulated;
  switchboard.breakSessions(switchboard.directory.resolve(`${OWNER}@s.whatsapp.net`)!.account, { kind: "logout" });
  assert.equal((await events.until("closed")).reason.kind, "logged_out");
}

testWithStore("what was received and waits when the phone unlinks the line is handed over", async (scene, kv) => {
  const { events, take, rows, texts } = await withTwoWaiting(scene, kv());
  await unlinkedByPhone(scene, events);
  take();
  await scene.network.forget(LINE, (message) => events.message(message));
  assert.equal(texts().at(-1), "two");
  assert.deepEqual(await rows(), []);
});

testWithStore("a log-out waits for a slow receiver no longer than 2 s, and the rest follows", async (scene, kv) => {
  const { events, take, rows, texts } = await withTwoWaiting(scene, kv());
  await unlinkedByPhone(scene, events);
  const forgotten = scene.network.forget(LINE, (message) => events.message(message));
  // The connection waits for the first until it ends; given once more, it is still not taken.
  while (texts().length < 2) {
    await scene.clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await scene.clock.advance(2_000);
  await forgotten;
  assert.deepEqual(await rows(), []);
  assert.equal(texts().includes("two"), false);
  take();
  await events.until("message", ({ message }) => message.text === "two");
});

testWithStore(
  "what is not taken when the link has ended is kept, and given to the next who asks",
  async (scene, kv) => {
    const { take } = await withTwoWaiting(scene, kv());
    const restarted = scene.restart();
    await scene.clock.advance(5_000);
    await restarted;
    take();
    const { account } = scene.simulated.switchboard.directory.resolve(`${OWNER}@s.whatsapp.net`)!;
    account.companions.clear();
    const { events } = await scene.open();
    assert.equal((await events.until("closed")).reason.kind, "logged_out");
    events.onMessage = () => Promise.reject(new Error("it is stopping"));
    await assert.rejects(scene.network.forget(LINE, (message) => events.message(message)), /it is stopping/);
    events.onMessage = () => Promise.resolve();
    await scene.network.forget(LINE, (message) => events.message(message));
    const given = events.of("message").map(({ message }) => message.text);
    assert.deepEqual(given.slice(-2), ["one", "two"]);
  },
);

testWithStore("sent messages, seen stanzas and recipients leave with the line", async (scene, kv) => {
  const { connection, events } = await scene.login();
  await send(connection, { networkId: "3EB0F5", to: FRIEND, body: text("hello") }, kv());
  await connection.logout();
  await scene.network.forget(LINE, (message) => events.message(message));
  for await (const row of kv().list({ prefix: networkKeys.waLine(LINE) })) assert.fail(`left: ${row.key.join("/")}`);
});

testWithStore(
  "a backlog whose end is never told is asked for no more than it takes, and new messages arrive",
  async (scene) => {
    const { connection, events } = await scene.login();
    await scene.friend.sendMessage({ to: OWNER, text: "while it is on" });
    await events.until("message");
    await connection.close();
    for (const words of ["one", "two", "three"]) await scene.friend.sendMessage({ to: OWNER, text: words });
    const { directory, faults } = scene.simulated.switchboard;
    faults.add(OWNER, "no_offline_end", true);
    const [companion] = directory.account(OWNER)!.companions.values();
    const { mailbox } = companion!;
    let requests = 0;
    const request = mailbox.request.bind(mailbox);
    mailbox.request = (count) => {
      requests++;
      request(count);
    };
    const again = await scene.open();
    const texts = () => again.events.of("message").map(({ message }) => message.text);
    await until(() => texts().length === 3, "what waited");
    const requested: number[] = [];
    for (let minute = 0; minute < 5; minute++) {
      for (let i = 0; i < 12; i++) {
        await again.connection.health(); // pings the network, whose answer shows that it is there
        await scene.clock.advance(5_000);
      }
      requested.push(requests);
    }
    await scene.friend.sendMessage({ to: OWNER, text: "later" });
    await until(() => texts().length === 4, "a new message");
    assert.deepEqual(texts(), ["one", "two", "three", "later"]);
    assert.deepEqual(again.events.of("closed"), []);
    assert.ok(requests < 10 && new Set(requested.slice(1)).size === 1, `asked ${requested} times by each minute`);
  },
);
