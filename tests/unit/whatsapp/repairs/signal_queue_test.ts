/** Work with a peer runs in the transaction that asked for it, whoever else works with the same peer. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { Buffer } from "node:buffer";
import { ProtocolAddress, SessionBuilder, SessionCipher, type SignalStorage } from "libsignal";
import { repairQueue } from "../../../../src/whatsapp/baileys/repairs/libsignal.ts";

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
