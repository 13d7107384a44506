/** Reading a message by trial leaves the sessions that do not fit as they are. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { Buffer } from "node:buffer";
import { ProtocolAddress, SessionBuilder, SessionCipher, type SignalStorage } from "libsignal";
import { encodeWAMessage, proto, unpadRandomMax16 } from "@whiskeysockets/baileys";
import { silenceLibsignal } from "../../../../src/whatsapp/baileys/repairs/containment.ts";
import {
  repairDerivation,
  repairGrowth,
  repairQueue,
  repairSenderKeys,
  repairTrials,
} from "../../../../src/whatsapp/baileys/repairs/signal.ts";
import { type SignalPeer, signalPeer } from "../../../support/signal_peer.ts";

silenceLibsignal();

type Trials = Pick<SessionCipher, "decryptWithSessions">;
const { prototype } = SessionCipher;

/** Runs with the library's own method, or with the repaired one. */
async function withCipher(method: Trials["decryptWithSessions"], run: () => Promise<void>): Promise<void> {
  const { decryptWithSessions } = prototype;
  prototype.decryptWithSessions = method;
  try {
    await run();
  } finally {
    prototype.decryptWithSessions = decryptWithSessions;
  }
}

const asIs = prototype.decryptWithSessions;
const repaired: Trials = { decryptWithSessions: asIs };
repairTrials(repaired);

/** Two who have talked; then the line starts a session anew that its friend has not heard of yet. */
async function twoSessions(): Promise<{ line: SignalPeer; friend: SignalPeer }> {
  const [line, friend] = [signalPeer("111@lid"), signalPeer("222@lid")];
  await friend.meet(line);
  assert.equal(await line.decrypt(friend.jid, await friend.encrypt(line.jid, "hello")), "hello");
  assert.equal(await friend.decrypt(line.jid, await line.encrypt(friend.jid, "hi")), "hi");
  await line.meet(friend);
  return { line, friend };
}

Deno.test("a message on an older session leaves the newer one as it was", () =>
  withCipher(repaired.decryptWithSessions, async () => {
    const { line, friend } = await twoSessions();
    assert.equal(await line.decrypt(friend.jid, await friend.encrypt(line.jid, "on the old one")), "on the old one");
    assert.equal(await friend.decrypt(line.jid, await line.encrypt(friend.jid, "on the new one")), "on the new one");
    assert.equal(
      await line.decrypt(friend.jid, await friend.encrypt(line.jid, "on the new one too")),
      "on the new one too",
    );
  }));

Deno.test("the library by itself spoils the newer one: when this fails, the repair has become needless", () =>
  withCipher(asIs, async () => {
    const { line, friend } = await twoSessions();
    assert.equal(await line.decrypt(friend.jid, await friend.encrypt(line.jid, "on the old one")), "on the old one");
    await assert.rejects(friend.decrypt(line.jid, await line.encrypt(friend.jid, "on the new one")));
  }));

Deno.test("a message that fits no session is refused, and what follows is read", () =>
  withCipher(repaired.decryptWithSessions, async () => {
    const { line, friend } = await twoSessions();
    const stranger = signalPeer("333@lid");
    await stranger.meet(line);
    const { ciphertext } = await stranger.encrypt(line.jid, "who am I?");
    await assert.rejects(line.decrypt(friend.jid, { type: "msg", ciphertext }));
    const twice = await friend.encrypt(line.jid, "once");
    assert.equal(await line.decrypt(friend.jid, twice), "once");
    await assert.rejects(line.decrypt(friend.jid, twice), /No matching sessions/);
    assert.equal(await line.decrypt(friend.jid, await friend.encrypt(line.jid, "next")), "next");
  }));

Deno.test("repairing twice is repairing once", () => {
  const { decryptWithSessions } = repaired;
  repairTrials(repaired);
  assert.equal(repaired.decryptWithSessions, decryptWithSessions);
});

Deno.test("a forged message is tried on the sessions that were used last, and lets others run in between", async () => {
  const tried: unknown[] = [];
  const trials = {
    decryptWithSessions(_: Uint8Array, [session]: unknown[]) {
      tried.push(session);
      return Promise.reject(new Error("Bad MAC"));
    },
  };
  repairTrials(trials as unknown as Trials);
  const sessions = Array.from({ length: 40 }, (_, i) => {
    const constructor = { deserialize: (data: unknown) => data };
    return { serialize: () => i, constructor };
  });
  let others = 0;
  setImmediate(() => others++);
  await assert.rejects(trials.decryptWithSessions(new Uint8Array(), sessions), /Bad MAC/);
  assert.deepEqual(tried, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal(others, 1);
});

const grown: Pick<SessionCipher, "doDecryptWhisperMessage"> = {
  doDecryptWhisperMessage: prototype.doDecryptWhisperMessage,
};
repairGrowth(grown);

/** Runs with sessions that are bounded. */
async function bounded(run: (line: SignalPeer, friend: SignalPeer) => Promise<void>): Promise<void> {
  const { doDecryptWhisperMessage } = prototype;
  prototype.doDecryptWhisperMessage = grown.doDecryptWhisperMessage;
  try {
    const [line, friend] = [signalPeer("111@lid"), signalPeer("222@lid")];
    await friend.meet(line);
    await withCipher(repaired.decryptWithSessions, () => run(line, friend));
  } finally {
    prototype.doDecryptWhisperMessage = doDecryptWhisperMessage;
  }
}

async function sessionBytes({ keys }: SignalPeer): Promise<number> {
  return JSON.stringify(await keys.get("session", ["222_1.0"])).length;
}

Deno.test("a session does not grow with its turns, and a message of some turns ago is read", () =>
  bounded(async (line, friend) => {
    const late: Awaited<ReturnType<SignalPeer["encrypt"]>>[] = [];
    const sizes: number[] = [];
    for (let turn = 0; turn < 40; turn++) {
      late.push(await friend.encrypt(line.jid, `late ${turn}`));
      assert.equal(await line.decrypt(friend.jid, await friend.encrypt(line.jid, "hello")), "hello");
      assert.equal(await friend.decrypt(line.jid, await line.encrypt(friend.jid, "hi")), "hi");
      sizes.push(await sessionBytes(line));
    }
    assert.ok(sizes[39]! <= sizes[9]! + 50, `${sizes[9]} bytes have become ${sizes[39]}`);
    assert.equal(await line.decrypt(friend.jid, late[37]!), "late 37");
    await assert.rejects(line.decrypt(friend.jid, late[2]!));
  }));

Deno.test("a session does not grow with the messages that its other side skips", () =>
  bounded(async (line, friend) => {
    const sizes: number[] = [];
    let skipped: Awaited<ReturnType<SignalPeer["encrypt"]>>;
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 1_000; i++) skipped = await friend.encrypt(line.jid, "skipped");
      assert.equal(await line.decrypt(friend.jid, await friend.encrypt(line.jid, "hello")), "hello");
      sizes.push(await sessionBytes(line));
    }
    assert.ok(sizes[2]! <= sizes[1]! + 5_000, `${sizes[1]} bytes have become ${sizes[2]}`);
    assert.equal(await line.decrypt(friend.jid, skipped!), "skipped");
  }));

// Keys of group messages: a sender keeps none that nobody needs, and a receiver those of skipped messages.

const GROUP = "1-2@g.us";

async function send(from: SignalPeer, text: string) {
  const data = encodeWAMessage({ conversation: text });
  return await from.repository.encryptGroupMessage({ group: GROUP, meId: from.jid, data });
}

/** Sends 41 messages, of which the receiver reads some, in this order; resolves to the size of the sender's row after each. */
async function talk(sender: SignalPeer, receiver: SignalPeer, order: readonly number[]): Promise<number[]> {
  const messages = [await send(sender, "0")];
  const item = {
    groupId: GROUP,
    axolotlSenderKeyDistributionMessage: messages[0]!.senderKeyDistributionMessage,
  };
  await receiver.repository.processSenderKeyDistributionMessage({ authorJid: sender.jid, item });
  const sizes: number[] = [];
  for (let i = 1; i <= 40; i++) {
    messages.push(await send(sender, String(i)));
    const [row] = Object.values(await sender.keys.get("sender-key", [`${GROUP}::111_1::0`]));
    sizes.push(row!.length);
  }
  for (const i of order) {
    const { ciphertext: msg } = messages[i]!;
    const plaintext = await receiver.repository.decryptGroupMessage({ group: GROUP, authorJid: sender.jid, msg });
    assert.equal(proto.Message.decode(unpadRandomMax16(plaintext)).conversation, String(i));
  }
  return sizes;
}

const pair = () => [signalPeer("111@lid"), signalPeer("222@lid")] as const;

Deno.test("a sender's row does not grow, and a late message is read, once", async () => {
  const asIs = await talk(...pair(), [0, 5, 40]);
  assert.ok(asIs[39]! > asIs[9]! + 3_000, "when this fails, the repair has become needless");
  await assert.rejects(talk(...pair(), [0, 5, 4]), TypeError, "when this fails, the repair has become needless");
  repairDerivation();
  repairSenderKeys();
  const sizes = await talk(...pair(), [0, 5, 40, 4, 39]);
  assert.ok(sizes[39]! <= sizes[9]! + 100, `${sizes[9]} bytes have become ${sizes[39]}`);
  await assert.rejects(talk(...pair(), [0, 5, 5]));
  await assert.rejects(talk(...pair(), [5, 4, 4]));
});

// Work with a peer runs in the transaction that asked for it, whoever else works with the same peer.

const PEER = new ProtocolAddress("111_1", 0);
const transaction = new AsyncLocalStorage<string>();

class Repaired extends SessionCipher {}
class RepairedBuilder extends SessionBuilder {}
// Classes of our own, so that the library's stay as they are.
Repaired.prototype.queueJob = SessionCipher.prototype.queueJob;
RepairedBuilder.prototype.initOutgoing = SessionBuilder.prototype.initOutgoing;
repairQueue(Repaired.prototype, RepairedBuilder.prototype);

/** In which transactions the library asks, for each of two that work with the same peer at once. */
async function contexts(work: (storage: SignalStorage) => Promise<unknown>): Promise<[string, string]> {
  const hold = Promise.withResolvers<void>();
  const seen: string[] = [];
  const storage = (held: Promise<void>) =>
    ({
      async isTrustedIdentity() {
        await held;
        seen.push(transaction.getStore()!);
        return false;
      },
      async loadSession() {
        await held;
        seen.push(transaction.getStore()!);
        return null;
      },
      getOurIdentity: () => ({}),
    }) as unknown as SignalStorage;
  const refused = (promise: Promise<unknown>) => assert.rejects(promise);
  const first = transaction.run("first", () => refused(work(storage(hold.promise))));
  const second = transaction.run("second", () => refused(work(storage(Promise.resolve()))));
  hold.resolve();
  await Promise.all([first, second]);
  return seen as [string, string];
}

const KEYS = { identityKey: new Uint8Array(33) } as Parameters<SessionBuilder["initOutgoing"]>[0];

Deno.test("encrypting for a peer with whom another line works runs in its own transaction", async () => {
  const encrypt = (storage: SignalStorage) => new Repaired(storage, PEER).encrypt(Buffer.from("hi"));
  assert.deepEqual(await contexts(encrypt), ["first", "second"]);
});

Deno.test("starting a session with such a peer runs in its own transaction too", async () => {
  const start = (storage: SignalStorage) => new RepairedBuilder(storage, PEER).initOutgoing(KEYS);
  assert.deepEqual(await contexts(start), ["first", "second"]);
});

Deno.test("the library by itself mixes them up: when this fails, the repair has become needless", async () => {
  const encrypt = (storage: SignalStorage) => new SessionCipher(storage, PEER).encrypt(Buffer.from("hi"));
  const start = (storage: SignalStorage) => new SessionBuilder(storage, PEER).initOutgoing(KEYS);
  assert.deepEqual(await contexts(encrypt), ["first", "first"]);
  assert.deepEqual(await contexts(start), ["first", "first"]);
});
