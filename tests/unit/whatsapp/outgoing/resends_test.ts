/** Retry receipts while the store has trouble. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { BinaryNode } from "@whiskeysockets/baileys";
import { StoreError } from "../../../../src/store/kv.ts";
import { takeRetryReceipts } from "../../../../src/whatsapp/baileys/outgoing/resends.ts";
import { settle, testRuntime } from "../../../support/runtime.ts";

type Options = Parameters<typeof takeRetryReceipts>[0];

/** A line that is asked for a message by a device, while the store is away for the first `refusals` reads. */
function asked({ refusals, isOver = () => false, sent }: {
  refusals: number;
  isOver?: () => boolean;
  /** Takes each message; resolves when it is written. */
  sent?: (stanza: BinaryNode) => Promise<void>;
}) {
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
      async sendNode(stanza: BinaryNode) {
        await sent?.(stanza);
        done.push(`sent to ${stanza.attrs.to}`);
      },
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
  const ask = (id: string, from = "222:3@lid") =>
    ws.emit("CB:receipt", { tag: "receipt", attrs: { id, from, type: "retry" } });
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

Deno.test("at most twenty resends are under way at once, in whatever chats", async () => {
  const stanzas: BinaryNode[] = [];
  const written: (() => void)[] = [];
  const { ask, done } = asked({
    refusals: 0,
    sent(stanza) {
      stanzas.push(stanza);
      return new Promise((resolve) => written.push(resolve));
    },
  });
  for (let i = 0; i < 59; i++) ask(`C${i}`, `${300 + i}:1@lid`);
  await settle(1_000);
  assert.equal(stanzas.length, 20);
  for (const end of written.splice(0, 5)) end();
  await settle(1_000);
  assert.deepEqual([stanzas.length, done.filter((step) => step === "ack").length], [25, 5]);
  while (written.length > 0) {
    written.shift()!();
    await settle(100);
  }
  assert.equal(stanzas.length, 60);
});

Deno.test("a resend names the device alone, and carries one ciphertext", async () => {
  const stanzas: BinaryNode[] = [];
  asked({ refusals: 0, sent: (stanza) => Promise.resolve(void stanzas.push(stanza)) });
  await settle(100);
  const [{ attrs, content }] = stanzas as [BinaryNode];
  assert.deepEqual(attrs, { id: "A", to: "222:3@lid", device_fanout: "false", type: "text" });
  assert.deepEqual((content as BinaryNode[]).map(({ tag }) => tag), ["enc", "device-identity"]);
});
