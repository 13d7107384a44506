import assert from "node:assert/strict";
import { accountKeys } from "../../../src/account/rows.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { newLine } from "../../../src/line/line.ts";
import { keepFile } from "../../../src/media/store.ts";
import { removeAccounts } from "../../../src/erasure/account_removal.ts";
import type { Message } from "../../../src/message/message.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change, type Kv, StoreError } from "../../../src/store/kv.ts";
import { aBulk, aCaller, keysUnder, type SendWorld, withSendWorld } from "../../support/send_world.ts";

function turn({ kv, runtime }: SendWorld, media = { remove: (_: string) => Promise.resolve() }): Promise<number> {
  return runtime.clock.during(removeAccounts({ kv, runtime, media, removeAbove: () => Promise.resolve() }));
}

Deno.test("an account goes when its lines are gone, with every row that names it, and no other", () =>
  withSendWorld(async (world) => {
    const { kv, accounts, callers, runtime } = world;
    const { account: { id }, apiKey } = await accounts.create({ name: "acme", plan: "free" });
    const { account: other } = await accounts.create({ name: "other", plan: "free" });
    await world.accept(aBulk(100, { caller: aCaller({}, id) }));
    await world.accept(aBulk(3, { caller: aCaller({}, other.id) }));
    for await (const { key, value } of kv.list<Message>({ prefix: messageKeys.messages() })) {
      if (value.accountId === id) await kv.commit(new Change().set(key, { ...value, status: "failed" }));
    }
    const line = newLine({
      id: "ses_1",
      accountId: id,
      name: "one",
      pairingPhone: null,
      createdAt: runtime.clock.now(),
    });
    await kv.commit(
      new Change().set(lineKeys.line("ses_1"), line).set(lineKeys.lineOfAccount(id, line.createdAt, "ses_1"), "ses_1"),
    );

    await accounts.remove(id);
    assert.equal(await callers.authenticate(apiKey), null);
    assert.equal(await accounts.get(id), null);
    await assert.rejects(accounts.update(id, { active: true }), { code: "not_found" });
    await assert.rejects(accounts.rotateKey(id), { code: "not_found" });
    assert.deepEqual((await accounts.list()).map((account) => account.id), [other.id]);
    assert.equal(await turn(world), 0, "its line is still there");
    const asked = (await kv.get(lineKeys.line("ses_1"))).value!;
    assert.deepEqual([asked.wanted, asked.generation], ["deleted", line.generation + 1]);
    assert.notEqual((await kv.get(accountKeys.account(id))).value, null);

    await kv.commit(new Change().delete(lineKeys.line("ses_1")));
    assert.equal(await turn(world), 1);
    const families = [
      "account",
      "api_key",
      "account_removal",
      "message",
      "ledger",
      "history_block",
      "history_day",
      "line_count",
    ];
    for (const family of [...families, "status_counts", "history_floor", "bulk_of_account", "line_of_account"]) {
      const keys = await keysUnder(kv, [family]);
      assert(!keys.some((key) => key.includes(id)), `${family} names it`);
    }
    assert.equal((await keysUnder(kv, ["message"])).length, 3, "the other's stay");
    for (const family of ["bulk", "open_bulk"]) assert.equal((await keysUnder(kv, [family])).length, 1, family);
    assert.equal(await turn(world), 0);
    await assert.rejects(accounts.remove(id), { code: "not_found" });
  }));

Deno.test("an account whose files cannot be removed now holds up no other", () =>
  withSendWorld(async (world) => {
    const { kv, accounts, runtime } = world;
    const ids: string[] = [];
    for (const name of ["first", "second"]) ids.push((await accounts.create({ name, plan: "free" })).account.id);
    const [first, second] = ids as [string, string];
    const change = new Change();
    const file = { size: 1, sha256: "", mimetype: "text/plain", filename: "a.txt", expiresAt: null };
    for (const accountId of ids) keepFile(change, { ...file, accountId, id: `med_of_${accountId}` });
    await kv.commit(change);
    for (const id of ids) await accounts.remove(id);

    const away = () => Promise.reject(new StoreError("unavailable", "the bucket refuses"));
    const media = { remove: (fileId: string) => fileId.endsWith(first) ? away() : Promise.resolve() };
    assert.equal(await turn(world, media), 1);
    const left = async (id: string) => (await kv.get(accountKeys.account(id))).value !== null;
    assert.deepEqual([await left(first), await left(second)], [true, false]);
    assert.ok(runtime.lines.some(({ accountId, error }) => accountId === first && /refuses/.test(String(error))));
    assert.equal(await turn(world), 1);
    assert.equal(await left(first), false);
  }));

Deno.test("an account whose files have filled the disk goes: they make the room that its rows need", () =>
  withSendWorld(async (world) => {
    const { accounts } = world;
    const { account: { id } } = await accounts.create({ name: "acme", plan: "free" });
    await world.accept(aBulk(3, { caller: aCaller({}, id) }));
    const change = new Change();
    const file = { size: 1, sha256: "", mimetype: "text/plain", filename: "a.txt", accountId: id };
    keepFile(change, { ...file, id: "med_1", expiresAt: null });
    keepFile(change, { ...file, id: "med_2", expiresAt: 1 });
    for await (const { key, value } of world.kv.list<Message>({ prefix: messageKeys.messages() })) {
      change.set(key, { ...value, status: "failed" });
    }
    await world.kv.commit(change);
    await accounts.remove(id);

    const onDisk = new Set(["med_1", "med_2"]);
    const kv: Kv = {
      ...world.kv,
      commit(change, options) {
        if (onDisk.size > 0) throw new StoreError("full", "there is no space left");
        return world.kv.commit(change, options);
      },
    };
    const media = { remove: (fileId: string) => Promise.resolve(void onDisk.delete(fileId)) };
    assert.equal(await turn({ ...world, kv }, media), 1);
    for (const family of ["file", "file_end", "message"]) assert.deepEqual(await keysUnder(kv, [family]), [], family);
  }));
