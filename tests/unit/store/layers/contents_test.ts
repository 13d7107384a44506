import assert from "node:assert/strict";
import { makeIsSealedAccount } from "../../../../src/account/callers.ts";
import { accountKeys, type AccountRecord } from "../../../../src/account/rows.ts";
import { rewriteContents } from "../../../../src/data/rekey.ts";
import { openDenoKv } from "../../../../src/store/deno_kv/deno_kv.ts";
import { Change, key, type KeyOf, prefix } from "../../../../src/store/kv.ts";
import type { ChunkedKv } from "../../../../src/store/layers/chunk.ts";
import { withSealedContents } from "../../../../src/store/layers/sealed_contents.ts";
import { makeSeal, SealError, sealKey } from "../../../../src/store/seal.ts";
import { type TestRuntime, testRuntime } from "../../../support/runtime.ts";

interface Said {
  accountId: string;
  text: string;
  at?: bigint;
  bytes?: Uint8Array;
}

const families = new Set(["said"]);
const said = (id: string): KeyOf<Said> => key("said", id);
const other = (id: string): KeyOf<Said> => key("other", id);
const sequence = (accountId: string): KeyOf<number> => key("order", accountId);

interface World {
  runtime: TestRuntime;
  /** As the engine has it, and as the gateway sees it. */
  raw: ChunkedKv;
  kv: ChunkedKv;
  choose(accountId: string, sealed: boolean): Promise<void>;
}

async function withWorld(run: (world: World) => Promise<void>, secret = "a secret"): Promise<void> {
  const runtime = testRuntime();
  const raw = await openDenoKv(":memory:", { runtime });
  try {
    const isChosen = makeIsSealedAccount(raw, runtime.clock);
    const kv = withSealedContents(raw, { seal: makeSeal(sealKey(secret), runtime.random), families, isChosen });
    const choose = async (accountId: string, sealed: boolean) => {
      await raw.commit(new Change().set(accountKeys.account(accountId), { id: accountId, sealed } as AccountRecord));
    };
    await choose("acc_1", true);
    await choose("acc_2", false);
    await run({ runtime, raw, kv, choose });
  } finally {
    raw.close();
  }
}

const isReadable = async (raw: ChunkedKv, at: KeyOf<Said>) => (await raw.get(at)).value?.text !== undefined;

Deno.test("what an account chose to have sealed is unreadable in the store, and as it was for whoever reads through it", () =>
  withWorld(async ({ raw, kv }) => {
    const short = { accountId: "acc_1", text: "hello", at: 12n, bytes: new Uint8Array([1, 2]) };
    const long = { accountId: "acc_1", text: "x".repeat(200_000) };
    const open = { accountId: "acc_2", text: "hello" };
    const change = new Change().set(said("1"), short).set(said("2"), long).set(said("3"), open);
    change.set(other("1"), short).add(["count"] as KeyOf<bigint>, 1);
    change.ordered(sequence("acc_1"), (order) => [{ kind: "set", key: said(`o${order}`), value: short }]);
    assert.ok(await kv.commit(change));

    assert.deepEqual(await Promise.all(["1", "2", "3"].map((id) => isReadable(raw, said(id)))), [false, false, true]);
    assert.ok(await isReadable(raw, other("1")), "of another family");
    assert.deepEqual((await kv.get(said("1"))).value, short);
    assert.deepEqual((await kv.getMany([said("2"), said("3"), said("4")])).map(({ value }) => value), [
      long,
      open,
      null,
    ]);
    const listed = await Array.fromAsync(kv.list({ prefix: prefix<Said>("said") }));
    assert.deepEqual(listed.map(({ value }) => value), [short, long, open, short]);
    for await (const { value } of raw.list({ prefix: prefix<Said>("said") })) {
      assert.equal(value.text !== undefined, value.accountId === "acc_2");
    }
    // A row that was read is the one that a commit checks.
    const row = await kv.get(said("1"));
    assert.ok(await kv.commit(new Change().check(row).set(said("1"), { ...short, text: "changed" })));
    assert.equal(await kv.commit(new Change().check(row).delete(said("1"))), null);
  }));

Deno.test("a choice counts for what is written a second later, and for the rest once that is written anew", () =>
  withWorld(async ({ runtime, raw, kv, choose }) => {
    const value = { accountId: "acc_2", text: "before the choice" };
    for (let i = 0; i < 20; i++) await kv.commit(new Change().set(said(String(i)), value));
    await kv.commit(new Change().set(said("of another"), { accountId: "acc_1", text: "sealed" }));
    for (const sealed of [true, false]) {
      await choose("acc_2", sealed);
      const rewriting = rewriteContents(kv, { accountId: "acc_2", families, clock: runtime.clock });
      await runtime.clock.advance(2_000);
      assert.equal(await rewriting, 20);
      for (let i = 0; i < 20; i++) assert.equal(await isReadable(raw, said(String(i))), !sealed);
      assert.deepEqual((await kv.get(said("7"))).value, value);
    }
    assert.equal(await isReadable(raw, said("of another")), false);
  }));

Deno.test("another secret key opens nothing", () =>
  withWorld(async ({ runtime, raw, kv }) => {
    await kv.commit(new Change().set(said("1"), { accountId: "acc_1", text: "hello" }));
    const seal = makeSeal(sealKey("another"), runtime.random);
    const stolen = withSealedContents(raw, { seal, families, isChosen: () => true });
    await assert.rejects(stolen.get(said("1")), SealError);
  }));
