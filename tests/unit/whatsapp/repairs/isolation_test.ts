/** A session changes in a transaction of its own, on disk at once, whatever transaction the library is in. */
import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";
import type { SignalDataSet, SignalKeyStore } from "@whiskeysockets/baileys";
import { LIDMappingStore } from "@whiskeysockets/baileys/lib/Signal/lid-mapping.js";
import { MessageRetryManager } from "@whiskeysockets/baileys/lib/Utils/message-retry-manager.js";
import pino from "pino";
import { StoreError } from "../../../../src/store/kv.ts";
import { boundNames, keepTrustedTokens, makeIsolation } from "../../../../src/whatsapp/baileys/repairs/isolation.ts";
import { settle } from "../../../support/runtime.ts";
import { memoryKeys, withTransactions } from "../../../support/signal_peer.ts";
import { keepNoRecent } from "../../../../src/whatsapp/baileys/outgoing/relay.ts";

const PHONE = "5511922222222@s.whatsapp.net";
const LID = "222@lid";

function aloneWith(lids: Record<string, string> = {}) {
  const commits: SignalDataSet[] = [];
  const memory = memoryKeys();
  const store = withTransactions({
    ...memory,
    set: (data) => {
      commits.push(data);
      return memory.set(data);
    },
  } as SignalKeyStore);
  const refused = { reads: 0 };
  const lidMapping = { getLIDForPN: (pn: string) => Promise.resolve(lids[pn] ?? null) };
  const alone = makeIsolation(store, lidMapping, () => refused.reads);
  return { store, alone, commits, refused };
}

const row = (id: string) => ({ session: { [id]: new Uint8Array([1]) } }) as SignalDataSet;

Deno.test("what runs alone is on disk while the transaction around it is still open", async () => {
  const { store, alone, commits } = aloneWith();
  await store.transaction(async () => {
    await store.set(row("outer"));
    await alone(LID, async () => await store.set(row("inner")));
    assert.deepEqual(commits, [row("inner")]);
  }, "the library's");
  assert.deepEqual(commits, [row("inner"), row("outer")]);
});

Deno.test("the transaction around it goes on as it was", async () => {
  const { store, alone, commits } = aloneWith();
  await store.transaction(async () => {
    await alone(LID, () => Promise.resolve());
    await store.set(row("outer"));
    assert.deepEqual(commits, []);
  }, "the library's");
});

Deno.test("works on one peer go one at a time, by number and by LID; another peer's do not wait", async () => {
  const { alone } = aloneWith({ [PHONE]: "222:0@lid" });
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const work = (name: string, until: Promise<void> = Promise.resolve()) => async () => {
    order.push(`${name} begins`);
    await until;
    order.push(`${name} ends`);
  };
  const all = [
    alone(LID, work("first", first.promise)),
    alone(PHONE, work("second")),
    alone("333@lid", work("other")),
  ];
  await settle();
  assert.deepEqual(order, ["first begins", "other begins", "other ends"]);
  first.resolve();
  await Promise.all(all);
  assert.deepEqual(order.slice(3), ["first ends", "second begins", "second ends"]);
});

Deno.test("a work that fails leaves nothing behind, and the next one runs", async () => {
  const { store, alone, commits } = aloneWith();
  await assert.rejects(
    alone(LID, async () => {
      await store.set(row("lost"));
      throw new Error("no");
    }),
    /no/,
  );
  assert.deepEqual(commits, []);
  assert.equal(await alone(LID, () => Promise.resolve("next")), "next");
});

Deno.test("a number whose LID cannot be asked for has its turn by number", async () => {
  const { store } = aloneWith();
  const alone = makeIsolation(store, { getLIDForPN: () => Promise.reject(new Error("not connected")) }, () => 0);
  assert.equal(await alone(PHONE, () => Promise.resolve("done")), "done");
});

Deno.test("nothing is written by what goes on after a read that was refused, and it says so", async () => {
  const { store, alone, commits, refused } = aloneWith();
  const work = async () => {
    refused.reads++;
    await store.set(row("a session that begins anew"));
    return "done";
  };
  await assert.rejects(alone(LID, work), StoreError);
  assert.deepEqual(commits, []);
});

Deno.test("nothing is written where the LID behind a number could not be read: its turn may be another's", async () => {
  const { store, commits, refused } = aloneWith();
  const lidMapping = {
    getLIDForPN() {
      refused.reads++;
      return Promise.reject(new StoreError("unavailable", "the store is away"));
    },
  };
  const alone = makeIsolation(store, lidMapping, () => refused.reads);
  await assert.rejects(alone(PHONE, async () => await store.set(row("a session under the number"))), StoreError);
  assert.deepEqual(commits, []);
});

// What the library notes of tokens after its transaction was over is kept.

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

Deno.test("the library remembers no messages, for nobody asks it for one", () => {
  const manager = new MessageRetryManager(pino({ level: "silent" }), 5);
  keepNoRecent(manager);
  manager.addRecentMessage("ana@lid", "3A", { conversation: "hello" });
  assert.equal(manager.getRecentMessage("ana@lid", "3A"), undefined);
  manager.clear();
});

Deno.test("of the names of people the library remembers the last ones, and asks the store for the others", async () => {
  const asked: string[] = [];
  const keys = {
    get(_type: string, ids: string[]) {
      asked.push(...ids);
      return Promise.resolve(Object.fromEntries(ids.map((id) => [id, `9${id}`])));
    },
  };
  const store = new LIDMappingStore(keys as never, pino({ level: "silent" }));
  boundNames(store);
  const lidOf = (i: number) => store.getLIDForPN(`${34_600_000_000 + i}@s.whatsapp.net`);
  for (let i = 0; i <= 5_000; i++) assert.equal(await lidOf(i), `9${34_600_000_000 + i}@lid`);
  assert.equal(asked.length, 5_001);
  for (const i of [5_000, 0]) await lidOf(i);
  assert.deepEqual(asked.slice(5_001), ["34600000000"]);
});

Deno.test("a number keeps its present LID when somebody asks for the number of an earlier one", async () => {
  const rows: Record<string, string> = { "5511": "222", "111_reverse": "5511", "222_reverse": "5511" };
  const get = (_type: string, ids: string[]) =>
    Promise.resolve(Object.fromEntries(ids.flatMap((id) => rows[id] ? [[id, rows[id]]] : [])));
  const store = new LIDMappingStore({ get } as never, pino({ level: "silent" }));
  boundNames(store);
  assert.equal(await store.getPNForLID("111@lid"), "5511:0@s.whatsapp.net");
  assert.equal(await store.getLIDForPN("5511@s.whatsapp.net"), "222@lid");
});
