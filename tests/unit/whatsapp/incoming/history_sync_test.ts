import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { deflateSync } from "node:zlib";
import { addTransactionCapability, proto, type SignalDataSet } from "@whiskeysockets/baileys";
import { StoreError } from "../../../../src/store/kv.ts";
import { makeReadOutside } from "../../../../src/inspect/inspector.ts";
import { readHistory } from "../../../../src/inspect/outside.ts";
import { takeHistory, wholeFile } from "../../../../src/whatsapp/baileys/incoming/history_sync.ts";
import { quietLogger } from "../../../../src/whatsapp/baileys/repairs/containment.ts";
import { uploaded } from "../../../support/media_server.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

const NOW_S = 1_790_000_000;
const token = (text: string) => Buffer.from(text);
/** Whose time never ends, however slow the machine is. */
const patient = makeReadOutside({ clock: new ManualClock() })("acc_1");
const packed = (text: string) => token(text).toString("base64");

function history(conversations: proto.IConversation[], salt?: Uint8Array): Uint8Array {
  const { INITIAL_BOOTSTRAP } = proto.HistorySync.HistorySyncType;
  const encoded = proto.HistorySync.encode({ syncType: INITIAL_BOOTSTRAP, conversations, progress: 7 }).finish();
  // Field 19, which the library's schema lacks.
  return Buffer.concat([encoded, salt ? Buffer.from([0x9a, 0x01, salt.length, ...salt]) : new Uint8Array(0)]);
}

Deno.test("of a history only tokens and the salt are read, by LID where it is named, in seconds", async () => {
  const messages = [{ message: { key: { id: "A" }, message: { conversation: "not for us" } } }];
  const salt = Buffer.alloc(32, 7);
  const read = await readHistory(deflateSync(history([
    { id: "4917000000001@s.whatsapp.net", lidJid: "91@lid", tcToken: token("ana"), tcTokenTimestamp: NOW_S, messages },
    { id: "92@lid", tcToken: token("ben"), tcTokenTimestamp: NOW_S * 1000, tcTokenSenderTimestamp: NOW_S - 5 },
    { id: "4917000000003@s.whatsapp.net", messages },
    { id: "4917000000004@s.whatsapp.net", tcToken: token("never") },
  ], salt)));
  assert.deepEqual(read, {
    tokens: [
      { chat: "91@lid", token: packed("ana"), at: NOW_S, sentAt: null },
      { chat: "92@lid", token: packed("ben"), at: NOW_S, sentAt: NOW_S - 5 },
    ],
    salt: salt.toString("base64"),
  });
  assert.deepEqual(await readHistory(deflateSync(new Uint8Array(0))), { tokens: [], salt: null });
  for (const broken of [[0xff], [0x12, 0x7f, 1], [0x9a, 0x01, 0xff, 0xff, 0xff, 0xff, 0x0f]]) {
    await assert.rejects(readHistory(deflateSync(Uint8Array.from(broken))));
  }
});

Deno.test("a newer token stays, an older one is replaced, and what can't be read changes nothing", async () => {
  const rows = new Map<string, unknown>();
  let isAway = false;
  const runtime = testRuntime();
  const keys = addTransactionCapability(
    {
      get: (type, ids) =>
        Promise.resolve(
          Object.fromEntries(ids.flatMap((id) => rows.has(`${type} ${id}`) ? [[id, rows.get(`${type} ${id}`)]] : [])),
        ) as never,
      set(data: SignalDataSet) {
        if (isAway) throw new StoreError("unavailable", "the store is away");
        for (const [type, values] of Object.entries(data)) {
          for (const [id, value] of Object.entries(values!)) rows.set(`${type} ${id}`, value);
        }
        return Promise.resolve();
      },
    },
    quietLogger(runtime.log),
    { maxCommitRetries: 1, delayBetweenTriesMs: 1 },
  );
  const host = {
    addressOf: () => null,
    get: () => Promise.reject(new Error()),
    post: () => Promise.reject(new Error()),
  };
  const take = (notification: proto.Message.IHistorySyncNotification) =>
    takeHistory(notification, { keys, host, readOutside: patient, runtime });
  const inline = (bytes: Uint8Array) => ({ initialHistBootstrapInlinePayload: deflateSync(bytes) });

  const from = (id: string, text: string, at: number) => ({ id, tcToken: token(text), tcTokenTimestamp: at });
  await take(inline(history([from("91@lid", "first", NOW_S), from("92@lid", "first", NOW_S)], Buffer.alloc(32, 7))));
  await take(inline(history([from("91@lid", "older", NOW_S - 9), from("92@lid", "newer", NOW_S + 9)])));
  const tokens = ["91@lid", "92@lid"].map((id) => String((rows.get(`tctoken ${id}`) as { token: Buffer }).token));
  assert.deepEqual(tokens, ["first", "newer"]);
  assert.deepEqual(rows.get("nct-salt salt"), Buffer.alloc(32, 7));

  const before = new Map(rows);
  await take({ initialHistBootstrapInlinePayload: Buffer.from("not packed") });
  await take(inline(Buffer.from([0x12, 0x7f, 1])));
  await take({ directPath: "/gone", mediaKey: Buffer.alloc(32), fileLength: 10 });
  await take({ directPath: "/large", mediaKey: Buffer.alloc(32), fileLength: 1e12 });
  assert.deepEqual(rows, before);

  isAway = true;
  await assert.rejects(take(inline(history([from("93@lid", "third", NOW_S)]))), StoreError, "it is to be tried again");
});

/** As they come from a socket. */
function* pieces(bytes: Uint8Array): Generator<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < bytes.length; at += 2 ** 16) yield Uint8Array.from(bytes.subarray(at, at + 2 ** 16));
}

Deno.test("a download pauses after each MB, for the messages of others", async () => {
  const content = Buffer.alloc(3.5 * 1024 ** 2, 7);
  const { file, bytes } = await uploaded(content, "md-app-state");
  const host = {
    addressOf: () => new URL("https://media.test/file"),
    get: () => Promise.resolve({ status: 200, length: bytes.length, body: ReadableStream.from(pieces(bytes)) }),
    post: () => Promise.reject(new Error()),
  };
  const pauses: number[] = [];
  const clock = new ManualClock();
  clock.after = (delayMs, run) => {
    if (delayMs < 1_000) {
      pauses.push(delayMs);
      queueMicrotask(run);
    }
    return () => {};
  };
  const chunks = await wholeFile({ kind: "md-app-state", file }, { host, clock });
  assert.ok(content.equals(Buffer.concat(chunks)));
  assert.deepEqual(pauses, [15, 15, 15]);
});

Deno.test("a conversation of megabytes is read across pieces, and one that is longer than any is passed over", async () => {
  const messages = (megabytes: number) =>
    Array.from({ length: megabytes }, () => ({ message: { message: { conversation: "x".repeat(1024 ** 2) } } }));
  const from = (id: string) => ({ id, tcToken: token(id), tcTokenTimestamp: NOW_S });
  const read = await readHistory(deflateSync(history([
    { ...from("1@lid"), messages: messages(3) },
    { ...from("2@lid"), messages: messages(17) },
    from("3@lid"),
  ])));
  assert.deepEqual(read.tokens.map(({ chat }) => chat), ["1@lid", "3@lid"]);
});

Deno.test("a history of a million empty conversations, or one that unpacks to 200 MB, costs the gateway nothing", async () => {
  const tiny = history([{ id: "1@lid", tcToken: token("t"), tcTokenTimestamp: NOW_S }]);
  const bombs = [
    Buffer.concat(Array.from({ length: 1_000_000 }, () => Buffer.from([0x12, 0]))),
    new Uint8Array(200 * 1024 ** 2),
    Buffer.concat(Array.from({ length: 200_000 }, () => tiny)),
  ];
  for (const bomb of bombs) {
    const read = await patient({ read: "history" }, [deflateSync(bomb)]).catch(() => ({ tokens: [] }));
    assert.ok(read.tokens.length <= 5_000);
  }
});
