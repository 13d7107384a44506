import assert from "node:assert/strict";
import type { Line } from "../../../src/line/line.ts";
import { type Accepted, LineChanged } from "../../../src/message/send_command.ts";
import { sleep } from "../../../src/runtime.ts";
import { accountKeys } from "../../../src/account/rows.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { mediaKeys } from "../../../src/media/rows.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change, type Kv, StoreError } from "../../../src/store/kv.ts";
import { withGroupCommit } from "../../../src/store/layers/group_commit.ts";
import { MemoryDisk, MemoryKv } from "../../support/memory_kv.ts";
import { type TestRuntime, testRuntime } from "../../support/runtime.ts";
import {
  aBulk,
  aCaller,
  aLine,
  aSend,
  keysUnder,
  type SendWorld,
  sendWorld,
  withSendWorld,
} from "../../support/send_world.ts";

/** How many were accepted; every other must have been refused by the quota. */
function countAccepted(outcomes: PromiseSettledResult<Accepted>[]): number {
  for (const outcome of outcomes) {
    if (outcome.status === "rejected") assert.equal(outcome.reason.code, "quota_exceeded");
  }
  return outcomes.filter((outcome) => outcome.status === "fulfilled").length;
}

Deno.test("an accepted send is a message, a place in its line's queue and a place in the history, in one commit", async () => {
  const kv = new MemoryKv();
  const { accept, history, woken, runtime } = sendWorld(kv, testRuntime());
  const { messages, bulkId, replayed } = await accept(aSend({ ttlMs: 1000 }));
  assert.equal(kv.disk.commits, 1);
  assert.deepEqual([messages.length, bulkId, replayed], [1, null, false]);
  const { id, jobId } = messages[0]!;
  const message = await history.get("acc_1", id);
  assert.match(message.networkId, /^3EB0[0-9A-F]{18}$/);
  const now = runtime.clock.now();
  assert.deepEqual({ ...message, networkId: "" }, {
    id,
    jobId,
    accountId: "acc_1",
    sessionId: "ses_1",
    networkId: "",
    position: now * 1000,
    historyNumber: 1,
    to: "34600000001",
    content: { kind: "text", text: "hello" },
    priority: "normal",
    sendAt: null,
    bulkId: null,
    status: "queued",
    attempts: 0,
    error: null,
    createdAt: now,
    expiresAt: now + 1000,
    sentAt: null,
    deliveredAt: null,
    readAt: null,
  });
  assert.deepEqual(await keysUnder(kv, messageKeys.queueOfLine("ses_1")), [
    messageKeys.queue("ses_1", "normal", "cold", message),
  ]);
  assert.deepEqual(await keysUnder(kv, messageKeys.queueOfChat("ses_1", "34600000001")), []);
  const page = await history.page("acc_1", { page: 1, limit: 20 });
  assert.deepEqual(page, { messages: [message], total: 1 });
  assert.deepEqual(woken, ["queue/ses_1"]);
});

Deno.test("sends that come together share a commit and keep their order", async () => {
  const kv = new MemoryKv();
  const { accept, history, woken } = sendWorld(kv, testRuntime());
  const sends = Array.from({ length: 100 }, (_, i) => aSend({ line: aLine(`ses_${i % 3}`) }));
  const accepted = await Promise.all(sends.map(accept));
  assert(kv.disk.commits <= 4, `${kv.disk.commits} commits`);
  const first = (await history.get("acc_1", accepted[0]!.messages[0]!.id)).position;
  for (const [i, { messages }] of accepted.entries()) {
    const { position, historyNumber, sessionId } = await history.get("acc_1", messages[0]!.id);
    assert.deepEqual({ position, historyNumber, sessionId }, {
      position: first + i,
      historyNumber: i + 1,
      sessionId: `ses_${i % 3}`,
    });
  }
  assert.deepEqual(new Set(woken), new Set(["queue/ses_0", "queue/ses_1", "queue/ses_2"]));
});

Deno.test("one half of many sends is parsed while the other is written; the slower the disk, the more share a commit", async () => {
  const kv = new MemoryKv();
  const runtime = testRuntime();
  const { accept } = sendWorld(kv, runtime);
  const commitsOf = async (sends: number) => {
    const before = kv.disk.commits;
    await Promise.all(Array.from({ length: sends }, () => accept(aSend())));
    return kv.disk.commits - before;
  };
  assert.equal(await commitsOf(12), 1);
  // 56 of 100 and 12, which are thought to come again, then 44.
  assert.equal(await commitsOf(100), 2);
  const commit = kv.commit.bind(kv);
  kv.commit = async (change) => {
    await runtime.clock.advance(10);
    return await commit(change);
  };
  await commitsOf(1);
  assert.equal(await commitsOf(100), 1);
});

Deno.test("the commits of several accounts share a flush, however many sends each has", async () => {
  const disk = new MemoryKv();
  const kv = withGroupCommit(disk, { limits: { checks: 90, mutations: 900, keyBytes: 76 * 1024, bytes: 700 * 1024 } });
  const { accept, history } = sendWorld(kv, testRuntime());
  const sends = Array.from({ length: 8 }, (_, i) => aCaller({}, `acc_${i}`))
    .flatMap((caller, i) => Array.from({ length: i + 1 }, () => aSend({ caller, line: aLine(`ses_${i}`) })));
  const accepted = await Promise.all(sends.map(accept));
  assert.ok(disk.disk.commits <= 3, `${disk.disk.commits} commits for 36 sends of 8 accounts`);
  for (const [i, { messages }] of accepted.entries()) {
    const { sessionId } = await history.get(sends[i]!.caller.account.id, messages[0]!.id);
    assert.equal(sessionId, sends[i]!.line.id);
  }
});

Deno.test("an account whose sends are refused holds up no other", async () => {
  const kv = new MemoryKv();
  const { accept } = sendWorld(kv, testRuntime());
  const full = aCaller({ daily: 0 }, "acc_full");
  const outcomes = await Promise.allSettled(
    [aSend({ caller: full }), aSend(), aSend({ caller: full }), aSend({ caller: aCaller({}, "acc_2") })].map(accept),
  );
  assert.deepEqual(outcomes.map(({ status }) => status), ["rejected", "fulfilled", "rejected", "fulfilled"]);
  await accept(aSend());
});

Deno.test("of 500 parallel sends against a quota of 100 exactly 100 are accepted", () =>
  withSendWorld(async ({ accept, kv }) => {
    const caller = aCaller({ daily: 100 });
    const outcomes = await Promise.allSettled(Array.from({ length: 500 }, () => accept(aSend({ caller }))));
    assert.equal(countAccepted(outcomes), 100);
    assert.equal((await keysUnder(kv, messageKeys.queueOfLine("ses_1"))).length, 100);
  }));

Deno.test("two processes that accept for one account share its quota exactly and never a place", () =>
  withSendWorld(async (world) => {
    const { clock } = world.runtime;
    const other = sendWorld(world.kv, testRuntime(2, clock));
    const caller = aCaller({ monthly: 100 });
    const sends = [world, other].flatMap(({ accept }) => Array.from({ length: 150 }, () => accept(aSend({ caller }))));
    assert.equal(countAccepted(await clock.during(Promise.allSettled(sends))), 100);
    const places = await keysUnder(world.kv, messageKeys.queueOfLine("ses_1"));
    assert.deepEqual(places.map((key) => key.at(-1)), Array.from({ length: 100 }, (_, i) => i + 1));
  }));

Deno.test("every answer says what is left of the quota after it", () =>
  withSendWorld(async ({ accept }) => {
    const caller = aCaller({ daily: 10, monthly: 100 });
    const all = await Promise.all([accept(aSend({ caller })), accept(aBulk(4, { caller })), accept(aSend({ caller }))]);
    assert.deepEqual(all.map(({ remaining }) => remaining), [
      { daily: 9, monthly: 99 },
      { daily: 5, monthly: 95 },
      { daily: 4, monthly: 94 },
    ]);
    assert.deepEqual((await accept(aSend())).remaining, { daily: null, monthly: null });
  }));

Deno.test("a bulk over the quota is refused whole, and its neighbours in the commit are accepted", () =>
  withSendWorld(async ({ accept, kv }) => {
    const caller = aCaller({ monthly: 5 });
    const [one, bulk, two] = await Promise.allSettled([
      accept(aSend({ caller })),
      accept(aBulk(5, { caller })),
      accept(aSend({ caller })),
    ]);
    assert.deepEqual([one?.status, two?.status], ["fulfilled", "fulfilled"]);
    assert(bulk?.status === "rejected");
    assert.equal(bulk.reason.code, "quota_exceeded");
    assert.deepEqual(bulk.reason.extras.members, { remaining: { daily: null, monthly: 4 } });
    assert.equal((await keysUnder(kv, messageKeys.queueOfLine("ses_1"))).length, 2);
  }));

Deno.test("the quota of a day is whole again at midnight UTC", () =>
  withSendWorld(async ({ accept, runtime }) => {
    const caller = aCaller({ daily: 1 });
    await accept(aSend({ caller }));
    await runtime.clock.advance(12 * 60 * 60 * 1000 - 1);
    await assert.rejects(accept(aSend({ caller })), { code: "quota_exceeded" });
    await runtime.clock.advance(1);
    await accept(aSend({ caller }));
  }));

Deno.test("fifty parallel posts with one Idempotency-Key make one message and give one answer", () =>
  withSendWorld(async ({ accept, kv }) => {
    const send = aSend({ idempotency: { key: "k", fingerprint: "f" }, caller: aCaller({ daily: 10 }) });
    const answers = await Promise.all(Array.from({ length: 50 }, () => accept(send)));
    assert.equal(answers.filter(({ replayed }) => !replayed).length, 1);
    assert.deepEqual(new Set(answers.map(({ messages }) => messages[0]!.id)).size, 1);
    assert.deepEqual(answers.at(-1)!.remaining, { daily: 9, monthly: null });
    assert.equal((await keysUnder(kv, messageKeys.queueOfLine("ses_1"))).length, 1);
  }));

Deno.test("a send whose line or key has changed since it was read is refused, and those beside it are accepted", () =>
  withSendWorld(async ({ accept, kv, accounts, callers }) => {
    const { account, apiKey } = await accounts.create({ name: "acme", plan: "free" });
    await callers.authenticate(apiKey);
    const { keyRow } = (await callers.recall(apiKey))!;
    const caller = { ...aCaller({}, account.id), keyRow: keyRow! };
    await accept(aSend({ caller }));
    await accounts.rotateKey(account.id);
    const line = aLine("ses_2");
    await kv.commit(new Change().set(lineKeys.line("ses_2"), {} as Line));

    const by = aCaller({}, account.id);
    const sends = [aSend({ caller: by }), aSend({ caller }), aSend({ caller: by, line }), aSend({ caller: by })];
    const [first, revoked, changed, last] = await Promise.allSettled(sends.map(accept));
    assert(first!.status === "fulfilled" && last!.status === "fulfilled");
    assert(revoked!.status === "rejected" && revoked!.reason.code === "api_key_invalid");
    assert(changed!.status === "rejected" && changed!.reason instanceof LineChanged);
    assert.equal((await keysUnder(kv, messageKeys.queueOfLine("ses_1"))).length, 3);
    assert.equal((await keysUnder(kv, messageKeys.queueOfLine("ses_2"))).length, 0);
  }));

Deno.test("however many rows each send has, a commit keeps to what it may have", () =>
  withSendWorld(async ({ accept, kv, runtime }) => {
    const commit = kv.commit.bind(kv);
    // A slow disk, so that as many as fit share a commit.
    kv.commit = async (change) => {
      await runtime.clock.advance(20);
      return await commit(change);
    };
    await accept(aSend());
    const file = { fileId: "", size: 3, sha256: "00" };
    const content = { kind: "image", filename: "a.png", mimetype: "image/png", caption: null } as const;
    const sends = Array.from({ length: 400 }, (_, i) =>
      aSend({
        items: [{ to: "34600000001", content: { ...content, file: { ...file, fileId: `med_${i}` } } }],
        ttlMs: 60_000 + 1_000 * i,
        idempotency: { key: `k${i}`, fingerprint: "f" },
      }));
    await Promise.all(sends.map(accept));
    assert.equal((await keysUnder(kv, messageKeys.messages())).length, 401);
  }));

/** A store whose commits take 20 ms each, one after another; `outcomes`: what became of each. */
function onSlowDisk({ clock }: TestRuntime, disk = new MemoryDisk()): { kv: Kv; outcomes: (string | null)[] } {
  const kv = new MemoryKv(disk);
  const commit = kv.commit.bind(kv);
  const outcomes: (string | null)[] = [];
  kv.commit = async (change) => {
    await sleep(clock, 20);
    const version = await commit(change);
    outcomes.push(version);
    return version;
  };
  return { kv, outcomes };
}

/** Clients that send again within 3 ms of the answer. */
async function sendOnAndOn(
  { accept, runtime: { clock } }: SendWorld,
  { clients, each }: { clients: number; each: number },
): Promise<void> {
  await Promise.all(Array.from({ length: clients }, async (_, client) => {
    for (let i = 0; i < each; i++) {
      await sleep(clock, client % 4);
      await accept(aSend());
    }
  }));
}

Deno.test("two processes that take sends of one account without a pause take turns, and refuse none", async () => {
  const runtime = testRuntime();
  const disk = new MemoryDisk();
  const stores = [onSlowDisk(runtime, disk), onSlowDisk(runtime, disk)];
  const worlds = stores.map(({ kv }) => sendWorld(kv, runtime));
  await runtime.clock.during(Promise.all(worlds.map((world) => sendOnAndOn(world, { clients: 8, each: 50 }))));
  const outcomes = stores.flatMap(({ outcomes }) => outcomes);
  const refused = outcomes.filter((version) => version === null).length;
  assert.ok(refused < outcomes.length / 2, `${refused} of ${outcomes.length} commits were in vain`);
});

Deno.test("sends on many lines at once share a commit as far as the checks that the store takes go", async () => {
  const commitsOf = async (mostChecks: number) => {
    const kv = new MemoryKv();
    kv.mostChecks = mostChecks;
    let most = 0;
    const commit = kv.commit.bind(kv);
    kv.commit = (change) => {
      most = Math.max(most, change.checks.length);
      return commit(change);
    };
    const { accept } = sendWorld(kv, testRuntime());
    await Promise.all(Array.from({ length: 60 }, (_, i) => accept(aSend({ line: aLine(`ses_${i % 30}`) }))));
    assert.equal((await keysUnder(kv, messageKeys.messages())).length, 60);
    assert.ok(most <= mostChecks);
    return kv.disk.commits;
  };
  assert.equal(await commitsOf(64), 2);
  assert.ok(await commitsOf(10) > 4);
});

Deno.test("one Idempotency-Key in two processes makes one message", () =>
  withSendWorld(async (world) => {
    const { clock } = world.runtime;
    const other = sendWorld(world.kv, testRuntime(2, clock));
    const send = aSend({ idempotency: { key: "k", fingerprint: "f" } });
    const answers = await clock.during(Promise.all([world, other, world, other].map(({ accept }) => accept(send))));
    assert.equal(new Set(answers.map(({ messages }) => messages[0]!.id)).size, 1);
  }));

Deno.test("an answer that another process keeps in the very moment of a repetition is given whole", () =>
  withSendWorld(async (world) => {
    const other = sendWorld(world.kv, testRuntime(2));
    const send = aSend({ idempotency: { key: "k", fingerprint: "f" } });
    let first: Accepted | null = null;
    const slow: Kv = {
      ...world.kv,
      // Answers are looked up after the ledger was read: the other process is faster by just that.
      getMany: async (wanted) => {
        first ??= await other.accept(send);
        return world.kv.getMany(wanted);
      },
    };
    const second = await sendWorld(slow, testRuntime(3)).accept(send);
    assert.deepEqual(second, { ...first!, replayed: true });
  }));

Deno.test("a replayed bulk gets the first answer, whatever became of its messages", () =>
  withSendWorld(async ({ accept, kv }) => {
    const bulk = aBulk(70, { idempotency: { key: "k", fingerprint: "f" }, caller: aCaller({ monthly: 70 }) });
    const first = await accept(bulk);
    await accept(aBulk(40));
    const key = messageKeys.message(first.messages[3]!.id);
    const sent = (await kv.get(key)).value!;
    await kv.commit(new Change().set(key, { ...sent, status: "sent" }));
    assert.deepEqual(await accept(bulk), { ...first, replayed: true });
  }));

Deno.test("an Idempotency-Key that comes with another body is refused, in the same commit and later", () =>
  withSendWorld(async ({ accept }) => {
    const [first, second] = await Promise.allSettled([
      accept(aSend({ idempotency: { key: "k", fingerprint: "f" } })),
      accept(aSend({ idempotency: { key: "k", fingerprint: "g" } })),
    ]);
    assert.equal(first?.status, "fulfilled");
    assert(second?.status === "rejected");
    assert.equal(second.reason.code, "idempotency_key_reused");
    await assert.rejects(accept(aSend({ idempotency: { key: "k", fingerprint: "h" } })), {
      code: "idempotency_key_reused",
    });
  }));

Deno.test("a refusal is not kept: the same key is accepted once there is quota again", () =>
  withSendWorld(async ({ accept }) => {
    const send = aSend({ idempotency: { key: "k", fingerprint: "f" }, caller: aCaller({ daily: 0 }) });
    await assert.rejects(accept(send), { code: "quota_exceeded" });
    assert.equal((await accept({ ...send, caller: aCaller() })).replayed, false);
  }));

Deno.test("an Idempotency-Key is free again after 24 hours", () =>
  withSendWorld(async ({ accept, runtime }) => {
    const send = aSend({ idempotency: { key: "k", fingerprint: "f" } });
    const first = await accept(send);
    await runtime.clock.advance(24 * 60 * 60 * 1000);
    const second = await accept(send);
    assert.equal(second.replayed, false);
    assert.notEqual(second.messages[0]!.id, first.messages[0]!.id);
  }));

Deno.test("a store that cannot be written accepts nothing and says so; afterwards sends are accepted again", async () => {
  const kv = new MemoryKv();
  const { accept, history, woken } = sendWorld(kv, testRuntime());
  kv.trouble = new StoreError("full", "no space left");
  const outcomes = await Promise.allSettled([accept(aSend()), accept(aBulk(3))]);
  for (const outcome of outcomes) assert(outcome.status === "rejected" && outcome.reason instanceof StoreError);
  assert.deepEqual(woken, []);
  kv.trouble = null;
  const { messages } = await accept(aSend());
  assert.equal((await history.get("acc_1", messages[0]!.id)).historyNumber, 1);
});

Deno.test("a file's row is written with its message, so that no sweep takes a file that is still to be sent", () =>
  withSendWorld(async ({ accept, kv }) => {
    const file = { fileId: "med_1", size: 3, sha256: "00" };
    const content = { kind: "document" as const, file, filename: "a.pdf", mimetype: "application/pdf", caption: null };
    await accept(aSend({ items: [{ to: "34600000001", content }] }));
    assert.deepEqual((await kv.get(mediaKeys.file("med_1"))).value, {
      id: "med_1",
      accountId: "acc_1",
      size: 3,
      sha256: "00",
      mimetype: "application/pdf",
      filename: "a.pdf",
      expiresAt: null,
    });
  }));

Deno.test("sends with everything that a send can have fit together in any number", () =>
  withSendWorld(async ({ accept, kv }) => {
    const sends = Array.from({ length: 400 }, (_, i) => {
      const file = { fileId: `med_${i}`, size: 3, sha256: "00" };
      const caption = "c".repeat(500);
      const content = { kind: "document" as const, file, filename: "a.pdf", mimetype: "application/pdf", caption };
      const idempotency = { key: `${i}`.padStart(255, "k"), fingerprint: "f".repeat(64) };
      return aSend({ items: [{ to: "34600000001", content }], idempotency });
    });
    await Promise.all(sends.map(accept));
    assert.equal((await keysUnder(kv, messageKeys.queueOfLine("ses_1"))).length, 400);
    assert.equal((await keysUnder(kv, accountKeys.answers())).length, 400);
  }));

Deno.test("texts of the greatest length fit, alone, together and in a bulk", () =>
  withSendWorld(async ({ accept, history }) => {
    const items = [{ to: "34600000001", content: { kind: "text" as const, text: "é😀x".repeat(16_384) } }];
    const long = aSend({ items });
    const alone = await accept(long);
    const together = await Promise.all(Array.from({ length: 20 }, () => accept(long)));
    const bulk = await accept(aSend({ items: Array.from({ length: 30 }, () => items[0]!), bulk: true }));
    for (const { messages } of [alone, ...together, bulk]) {
      assert.deepEqual((await history.get("acc_1", messages.at(-1)!.id)).content, items[0]!.content);
    }
  }));

Deno.test("the ledgers of accounts that have sent nothing for long are not remembered", async () => {
  const kv = new MemoryKv();
  const { accept } = sendWorld(kv, testRuntime());
  const sendOf = (accountId: string) => aSend({ caller: aCaller({}, accountId), line: aLine(`ses_${accountId}`) });
  let reads = 0;
  const get = kv.get.bind(kv);
  kv.get = (key) => {
    if (key.join() === messageKeys.ledger("acc_0").join()) reads++;
    return get(key);
  };
  await accept(sendOf("acc_0"));
  await accept(sendOf("acc_0"));
  assert.equal(reads, 1);
  for (let i = 1; i <= 10_000; i++) await accept(sendOf(`acc_${i}`));
  await accept(sendOf("acc_0"));
  assert.equal(reads, 2);
});
