/** Whatever the network lets through becomes an event, however long: through the real receiver, journal and store. */
import { chatsOn } from "../../support/chats.ts";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { encodeWAMessage, proto } from "@whiskeysockets/baileys";
import { serialize } from "node:v8";
import type { LoggedEvent } from "../../../src/event/event.ts";
import { sweepSurplus } from "../../../src/event/sweep.ts";
import { forgetReceived } from "../../../src/line/chat_entries.ts";
import { Receiver, type ReceiverDeps } from "../../../src/line/receiver.ts";
import { openDenoKv } from "../../../src/store/deno_kv/deno_kv.ts";
import { type Kv, prefix } from "../../../src/store/kv.ts";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";
import { openAuthState } from "../../../src/whatsapp/baileys/auth_state.ts";
import { decode, type DecodeContext } from "../../../src/whatsapp/baileys/incoming/decode.ts";
import { Journal } from "../../../src/whatsapp/baileys/incoming/journal.ts";
import { eraseReceived, recall } from "../../../src/whatsapp/baileys/stored_messages.ts";
import { LONG } from "../../support/long_messages.ts";
import { testRuntime } from "../../support/runtime.ts";
import { testEvents } from "../../support/bell.ts";

const LINE = { lineId: "ses_1", accountId: "acc_1" };
const FRIEND = "552@s.whatsapp.net";

async function withLine(
  play: (take: (id: string, message: proto.IMessage) => Promise<void>, kv: Kv) => Promise<void>,
): Promise<void> {
  const runtime = testRuntime();
  const kv = await openDenoKv(":memory:", { runtime });
  const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
  const line = { kv, seal, lineId: LINE.lineId };
  try {
    const auth = await openAuthState(line);
    const journal = new Journal(line, auth, runtime.clock);
    const deps: ReceiverDeps = {
      kv,
      runtime,
      chats: chatsOn(kv),
      events: testEvents(kv, runtime),
      media: { take: () => Promise.resolve(null) },
      network: { recall: () => Promise.resolve(null) },
      lookups: { forget: () => {} },
      recorder: { cancel: () => Promise.resolve([]), withdraw: () => Promise.resolve([]) },
      bell: { ring() {} },
      optOuts: { heard: () => Promise.resolve(), known: () => Promise.resolve() },
      sessionName: () => Promise.resolve("front desk"),
    };
    const receiver = new Receiver(deps, LINE, () => Promise.resolve());
    const context = {
      me: { id: "551:1@s.whatsapp.net" },
      clock: runtime.clock,
      phoneOf: () => Promise.resolve(null),
      findOriginal: () => Promise.resolve(null),
      media: () => ({ mimetype: "a/b", filename: null, size: null, download: () => Promise.reject(new Error()) }),
    } as unknown as DecodeContext;
    await play(async (id, message) => {
      const attrs = { id, from: FRIEND, t: String(Math.floor(runtime.clock.now() / 1000)) };
      const part = { part: `part of ${id}`, stanza: `${FRIEND}||${id}`, attrs };
      const entry = journal.entryOf(part, encodeWAMessage(proto.Message.fromObject(message)));
      await journal.keep(entry, auth.keys);
      const [incoming] = await decode(entry, context);
      const isSettled = await receiver.message(incoming!, journal.settling(entry, [incoming!]));
      assert.equal(isSettled, true, `${id} was dropped`);
    }, kv);
  } finally {
    kv.close();
  }
}

/** Bytes: around the limits of a commit and of an event, and far beyond them. */
const SIZES = [131_072, 250_000, 262_144, 450_000, 520_000, 1_000_000];
/** Those that cost the most: what they say is longer in the event and in what is kept than on the network. */
const KINDS = ["text", "emoji", "escapes", "caption", "quote", "contacts", "picture", "interactive", "mentions"];

Deno.test("a message of any size becomes one event, of each kind that can be long", () =>
  withLine(async (take, kv) => {
    const events = testEvents(kv, testRuntime());
    for (const kind of KINDS) {
      for (const bytes of SIZES) await take(`${kind} ${bytes}`, LONG[kind]!(bytes));
    }
    const told: string[] = [];
    for (let after: string | null = null;;) {
      const page = await events.read(LINE.accountId, { after, types: null, sessionId: null, limit: 100 });
      for (const { data } of page.events) told.push((data as { messageId: string }).messageId);
      if (!page.isCut) break;
      after = page.next;
    }
    const wanted = KINDS.flatMap((kind) => SIZES.map((bytes) => `${kind} ${bytes}`));
    assert.deepEqual(told, wanted);
  }));

Deno.test("a stranger's original takes no more than its text, and can still be answered", () =>
  withLine(async (take, kv) => {
    const seal = makeSeal(sealKey("a secret of the tests"), testRuntime().random);
    const line = { kv, seal, lineId: LINE.lineId };
    // Of so many mentions only the event is told.
    for (const kind of KINDS.filter((kind) => kind !== "mentions")) {
      await take(kind, { ...LONG[kind]!(900_000), messageContextInfo: { messageSecret: Buffer.alloc(32, 7) } });
      const { value } = await kv.get<Uint8Array>(["wa", LINE.lineId, "received", kind]);
      assert.ok(value!.length < 500_000, `${kind} takes ${value!.length}`);
      const recalled = await recall(line, kind);
      const isText = ["text", "emoji", "escapes", "quote"].includes(kind);
      assert.deepEqual([recalled?.chat, recalled?.kind], [FRIEND, isText ? "text" : null]);
    }
    await take("usual", LONG.contact!(1_000));
    assert.equal((await recall(line, "usual"))?.kind, "contact");
  }));

Deno.test("what strangers write takes no more than the account's room, with what is kept beside it", () =>
  withLine(async (take, kv) => {
    const [runtime, seal] = [testRuntime(), makeSeal(sealKey("a secret of the tests"), testRuntime().random)];
    const keepBytes = 5_000_000;
    for (let i = 0; i < 20; i++) await take(`long ${i}`, LONG.text!(200_000));
    const kept = async () => {
      const families = new Map<string, { rows: number; bytes: number }>();
      for (const family of ["event", "chat_message", "wa"]) {
        for await (const { key, value } of kv.list({ prefix: prefix<unknown>(family) })) {
          const name = family === "wa" ? String(key[2]) : family;
          const { rows, bytes } = families.get(name) ?? { rows: 0, bytes: 0 };
          families.set(name, { rows: rows + 1, bytes: bytes + serialize(value).length });
        }
      }
      return families;
    };
    const bytesOf = (families: Awaited<ReturnType<typeof kept>>) =>
      [...families.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    const before = await kept();
    assert.ok(bytesOf(before) > keepBytes);
    const network = {
      eraseReceived: (lineId: string, messages: readonly { chat: string; networkId: string }[]) =>
        eraseReceived({ kv, seal, lineId }, messages),
    };
    const forget = (events: readonly LoggedEvent[]) => forgetReceived({ kv, network, chats: chatsOn(kv) }, events);
    const removed = await runtime.clock.during(sweepSurplus(kv, runtime, { keepBytes, forget }));
    const after = await kept();
    assert.ok(bytesOf(after) <= keepBytes, `${bytesOf(after)} bytes are kept`);
    assert.ok(removed > 5 && removed < 20);
    for (const family of ["event", "chat_message", "received"]) assert.equal(after.get(family)?.rows, 20 - removed);
  }));
