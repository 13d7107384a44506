/** A store that refuses while a message comes in: the network keeps the message, and the line gets it when it is back. */
import assert from "node:assert/strict";
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import { type Change, type Key, type Kv, StoreError } from "../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../src/store/seal.ts";
import { baileysNetwork } from "../../src/whatsapp/baileys/network.ts";
import { type EngineOptions, type Scene, send, text, withScene } from "../support/connection_suite.ts";
import { LineEvents } from "../support/line_events.ts";
import { UNHEARD } from "../support/unheard.ts";

const OWNER = "5511900000001";
const STRANGER = "5511900000003";

/** What the store under the line refuses at the moment. */
interface Refusals {
  reads: (key: Key) => boolean;
  commits: (change: Change) => boolean;
}

const NOTHING: Refusals = { reads: () => false, commits: () => false };
const FULL: Refusals = { reads: () => false, commits: () => true };
const LOCKED: Refusals = { reads: () => true, commits: () => true };

function refusingKv(kv: Kv, refusals: Refusals): Kv {
  const no = () => Promise.reject(new StoreError("unavailable", "no"));
  return {
    mostChecks: kv.mostChecks,
    get: (key) => refusals.reads(key) ? no() : kv.get(key),
    getMany: (keys) => keys.some(refusals.reads) ? no() : kv.getMany(keys),
    list: (range, options) => kv.list(range, options),
    commit: (change) => refusals.commits(change) ? no() : kv.commit(change),
    close: () => kv.close(),
  };
}

function test(name: string, play: (scene: Scene, refuse: (what: Refusals) => void) => Promise<void>): void {
  const refusals = { ...NOTHING };
  const open = async ({ simulated, runtime, folder }: EngineOptions) => {
    const ca = `${folder}/ca.pem`;
    await Deno.writeTextFile(ca, simulated.caPem);
    const kv = refusingKv(await openDenoKv(`${folder}/store/kv.sqlite3`, { runtime }), refusals);
    const { url, mediaUrl, rootKey } = simulated;
    const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
    const whatsapp = { url, rootKey, mediaUrl, ca, version: null };
    const network = baileysNetwork({ ...UNHEARD, runtime, kv, storeOf: () => kv, seal, whatsapp });
    return { network, close: () => Promise.resolve(kv.close()) };
  };
  const refuse = (what: Refusals) => void Object.assign(refusals, what);
  const fn = () => withScene(open, (scene) => play(scene, refuse)).finally(() => refuse(NOTHING));
  Deno.test({ name: `Baileys: ${name}`, fn, sanitizeOps: false, sanitizeResources: false });
}

/** A line that was started anew after the friend had written to it: it has a session with them, and nothing in memory. */
async function openKnowing(scene: Scene, text: string): ReturnType<Scene["open"]> {
  const first = await scene.login();
  await scene.friend.sendMessage({ to: OWNER, text });
  await first.events.until("message");
  await scene.restart();
  const line = await scene.open();
  await line.events.until("open");
  return line;
}

test(
  "a full disk ends the line, and the first message of a new sender comes when there is room",
  async (scene, refuse) => {
    const line = await scene.login();
    refuse(FULL);
    await scene.friend.sendMessage({ to: OWNER, text: "hello" });
    assert.equal((await line.events.until("closed")).reason.kind, "unavailable");
    refuse(NOTHING);
    const { message } = await (await scene.open()).events.until("message");
    assert.deepEqual([message.text, message.undecryptable], ["hello", false]);
  },
);

test(
  "a locked store ends the line, and the message of a sender known before the start comes later",
  async (scene, refuse) => {
    const line = await openKnowing(scene, "first");
    refuse(LOCKED);
    await scene.friend.sendMessage({ to: OWNER, text: "second" });
    assert.equal((await line.events.until("closed")).reason.kind, "unavailable");
    refuse(NOTHING);
    const { message } = await (await scene.open()).events.until("message", ({ message }) => message.text === "second");
    assert.equal(message.undecryptable, false);
  },
);

test(
  "a session that cannot be read at once is not taken for a lost one: messages keep their order",
  async (scene, refuse) => {
    const line = await openKnowing(scene, "known");
    const [friend] = scene.friend.lid.split("@");
    let reads = 0;
    const ofSession = (key: Key) => key.includes("session") && String(key.at(-1)).startsWith(friend!);
    refuse({ ...NOTHING, reads: (key) => ofSession(key) && reads++ === 0 });
    for (const text of ["one", "two"]) await scene.friend.sendMessage({ to: OWNER, text });
    assert.equal((await line.events.until("closed")).reason.kind, "unavailable");
    const again = await scene.open();
    await again.events.until("message", ({ message }) => message.text === "two");
    assert.deepEqual(again.events.of("message").map(({ message }) => message.text), ["one", "two"]);
  },
);

test("a store that refuses what is learned of a recipient does not end the line", async (scene, refuse) => {
  scene.simulated.addPhone(STRANGER);
  let refused = 0;
  const aboutRecipients = (change: Change) => {
    const refuses = change.mutations.some(({ key }) => key.includes("lid-mapping"));
    if (refuses) refused++;
    return refuses;
  };
  await (await scene.login()).connection.close();
  const outcome = Promise.withResolvers<string>();
  const events = new LineEvents();
  // An answer to what comes in is a send like any other.
  events.onMessage = async () => {
    refuse({ ...NOTHING, commits: aboutRecipients });
    const message = { networkId: "3EB0F6", to: STRANGER, body: text("hello") };
    outcome.resolve((await send(line.connection, message)).kind);
  };
  const line = await scene.open({ events });
  await events.until("open");
  await scene.friend.sendMessage({ to: OWNER, text: "hello" });
  assert.equal(await outcome.promise, "sent");
  assert.ok(refused > 0);
  assert.deepEqual(events.of("closed"), []);
});

test("credentials that could not be written are written when the store is back", async (scene, refuse) => {
  await scene.login();
  await scene.restart();
  let isAway = true;
  let refused = 0;
  let written = 0;
  const ofCredentials = (change: Change) => change.mutations.some(({ key }) => key.at(-1) === "creds");
  refuse({
    ...NOTHING,
    commits: (change) => {
      if (!ofCredentials(change)) return false;
      if (isAway) refused++;
      else written++;
      return isAway;
    },
  });
  const { events } = await scene.open();
  await events.until("open");
  await scene.friend.sendMessage({ to: OWNER, text: "hello" });
  await events.until("message");
  assert.ok(refused > 0, "the login changes them");
  isAway = false;
  await scene.clock.advance(1_000);
  assert.ok(written > 0, "nobody asks for it again");
  assert.deepEqual(events.of("closed"), []);
});
