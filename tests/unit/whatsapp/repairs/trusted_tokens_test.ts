/** What the library notes of tokens after its transaction was over is kept. */
import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";
import { keepTrustedTokens } from "../../../../src/whatsapp/baileys/repairs/isolation.ts";
import { memoryKeys, withTransactions } from "../../../support/signal_peer.ts";

const CHAT = "222@lid";
const BYTES = new Uint8Array([1]) as Buffer;
const NOTE = { token: BYTES, senderTimestamp: 1_800_000_000 };

Deno.test("a token that was given is known after the transaction of the send", async () => {
  const memory = memoryKeys();
  const store = withTransactions(memory);
  keepTrustedTokens(store);
  const answered = Promise.withResolvers<void>();
  let noted = Promise.resolve();
  await store.transaction(async () => {
    assert.deepEqual(await store.get("tctoken", [CHAT]), {});
    noted = answered.promise.then(async () => {
      await store.set({ tctoken: { [CHAT]: NOTE, __index: { token: BYTES } } });
    });
  }, "a send");
  answered.resolve();
  await noted;
  assert.deepEqual(await memory.get("tctoken", [CHAT, "__index"]), { [CHAT]: NOTE });
});

Deno.test("inside of a transaction a token that came meanwhile is seen", async () => {
  const store = withTransactions(memoryKeys());
  keepTrustedTokens(store);
  const token = { token: BYTES, timestamp: "1800000000" };
  await store.transaction(async () => {
    await store.get("tctoken", [CHAT]);
    await new Promise<void>((resolve) => queueMicrotask(resolve));
    await store.set({ tctoken: { [CHAT]: token } });
    assert.deepEqual(await store.get("tctoken", [CHAT]), { [CHAT]: token });
  }, "a send");
});

Deno.test("other keys stay in their transaction", async () => {
  const memory = memoryKeys();
  const store = withTransactions(memory);
  keepTrustedTokens(store);
  const session = new Uint8Array([1]);
  await store.transaction(async () => {
    await store.set({ session: { "222.0": session } });
    assert.deepEqual(await memory.get("session", ["222.0"]), {});
  }, "a send");
  assert.deepEqual(await memory.get("session", ["222.0"]), { "222.0": session });
});
