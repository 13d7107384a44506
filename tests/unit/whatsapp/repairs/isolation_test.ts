/** A session changes in a transaction of its own, on disk at once, whatever transaction the library is in. */
import assert from "node:assert/strict";
import type { SignalDataSet, SignalKeyStore } from "@whiskeysockets/baileys";
import { StoreError } from "../../../../src/store/kv.ts";
import { makeAlone } from "../../../../src/whatsapp/baileys/repairs/isolation.ts";
import { settle } from "../../../support/runtime.ts";
import { memoryKeys, withTransactions } from "../../../support/signal_peer.ts";

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
  const alone = makeAlone(store, lidMapping, () => refused.reads);
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
  const alone = makeAlone(store, { getLIDForPN: () => Promise.reject(new Error("not connected")) }, () => 0);
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
  const alone = makeAlone(store, lidMapping, () => refused.reads);
  await assert.rejects(alone(PHONE, async () => await store.set(row("a session under the number"))), StoreError);
  assert.deepEqual(commits, []);
});
