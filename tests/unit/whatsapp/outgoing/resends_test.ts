/** Retry receipts while the store has trouble. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { BinaryNode } from "@whiskeysockets/baileys";
import { StoreError } from "../../../../src/store/kv.ts";
import { takeRetryReceipts } from "../../../../src/whatsapp/baileys/outgoing/resends.ts";
import { settle, testRuntime } from "../../../support/runtime.ts";

type Options = Parameters<typeof takeRetryReceipts>[0];

/** A line that is asked for a message by a device, while the store is away for the first `refusals` reads. */
function asked({ refusals, isOver = () => false }: { refusals: number; isOver?: () => boolean }) {
  const runtime = testRuntime();
  const done: string[] = [];
  const ws = new EventEmitter();
  ws.on("CB:receipt", () => done.push("library"));
  let left = refusals;
  takeRetryReceipts({
    socket: {
      ws,
      assertSessions: () => Promise.resolve(true),
      authState: { creds: { account: {} } },
      sendNode: ({ attrs }: BinaryNode) => Promise.resolve(done.push(`sent to ${attrs.to}`)),
      sendMessageAck: () => Promise.resolve(done.push("ack")),
      signalRepository: {
        encryptMessage: () => Promise.resolve({ type: "msg", ciphertext: new Uint8Array(1) }),
      },
    },
    me: () => ({ id: "551:1@s.whatsapp.net" }),
    sentIn: () =>
      left-- > 0
        ? Promise.reject(new StoreError("unavailable", "the store is away"))
        : Promise.resolve({ conversation: "hello" }),
    isOver,
    runtime,
  } as unknown as Options);
  const ask = (id: string) =>
    ws.emit("CB:receipt", { tag: "receipt", attrs: { id, from: "222:3@lid", type: "retry" } });
  ask("A");
  return { done, ask, clock: runtime.clock };
}

Deno.test("a message that the store could not give is sent again when it can, and only then is the receipt acknowledged", async () => {
  const { done, clock } = asked({ refusals: 2 });
  await settle(10);
  assert.deepEqual(done, []);
  await clock.advance(3_000);
  assert.deepEqual(done, ["sent to 222:3@lid", "ack"]);
});

Deno.test("a connection that has ended waits for the store no longer: the network delivers the receipt to the next", async () => {
  let isOver = false;
  const { done, clock } = asked({ refusals: 2, isOver: () => isOver });
  await settle(10);
  isOver = true;
  await clock.advance(3_000);
  assert.deepEqual(done, []);
});

Deno.test("resends are spread out, each receipt is acknowledged at once, and those that would wait too long are not made", async () => {
  const { done, ask, clock } = asked({ refusals: 0 });
  for (let i = 1; i < 300; i++) ask(`B${i}`);
  const count = (what: string) => done.filter((step) => step === what).length;
  await settle(3_000);
  assert.deepEqual([count("ack"), count("sent to 222:3@lid")], [300, 10]);
  await clock.advance(60_000);
  assert.equal(count("sent to 222:3@lid"), 20);
  for (let minute = 1; minute < 20; minute++) await clock.advance(60_000);
  assert.equal(count("sent to 222:3@lid"), 110);
});
