import assert from "node:assert/strict";
import { withGroupCommit } from "../../../../src/store/layers/group_commit.ts";
import { Change, type Kv, StoreError } from "../../../../src/store/kv.ts";

/** A store that only takes notes of commits; each waits until it is let through. */
function notedKv(answer: (change: Change) => string | null | Error = () => "v1") {
  const commits: Change[] = [];
  const gates: (() => void)[] = [];
  const kv = {
    async commit(change: Change) {
      commits.push(change);
      await new Promise<void>((resolve) => gates.push(resolve));
      const said = answer(change);
      if (said instanceof Error) throw said;
      return said;
    },
  } as unknown as Kv;
  /** Lets every commit through, also those that follow, until `work` is done. */
  const flow = async <T>(work: Promise<T>): Promise<T> => {
    let done = false;
    void work.catch(() => {}).then(() => done = true);
    while (!done) {
      gates.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return await work;
  };
  return {
    kv: withGroupCommit(kv, { limits: { checks: 90, mutations: 980, keyBytes: 76 * 1024, bytes: 760 * 1024 } }),
    commits,
    flow,
  };
}

Deno.test("concurrent commits become one, with amounts for one counter added up", async () => {
  const { kv, commits, flow } = notedKv();
  const work = Array.from({ length: 20 }, (_, i) => kv.commit(new Change().set(["k", i], i).add(["n"], i)));
  assert.deepEqual(await flow(Promise.all(work)), work.map(() => "v1"));
  assert.equal(commits.length, 1);
  assert.deepEqual(commits[0]!.mutations.filter((each) => each.kind === "add"), [
    { kind: "add", key: ["n"], amount: 190n },
  ]);
});

Deno.test("what a change does to one counter keeps its order in a merged commit", async () => {
  const { kv, commits, flow } = notedKv();
  const first = kv.commit(new Change().set(["a"], 1));
  const removed = kv.commit(new Change().add(["n"], 1).delete(["n"]));
  await flow(
    Promise.all([first, removed, kv.commit(new Change().add(["m"], 1)), kv.commit(new Change().add(["m"], 2))]),
  );
  assert.deepEqual(commits.at(-1)!.mutations.filter(({ key }) => key[0] !== "a"), [
    { kind: "add", key: ["n"], amount: 1n },
    { kind: "delete", key: ["n"] },
    { kind: "add", key: ["m"], amount: 3n },
  ]);
});

Deno.test("a change that lingers starts no commit: it goes last with the next one, or alone once its time is over", async () => {
  const { kv, commits, flow } = notedKv();
  const keys = (change: Change) => change.mutations.map(({ key }) => key.join("/"));
  const never = new Promise<void>(() => {});
  const lingering = kv.commit(new Change().delete(["old", 1]), { lingerUntil: never });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(commits.length, 0);
  await flow(Promise.all([kv.commit(new Change().set(["new", 1], 1)), lingering]));
  assert.deepEqual(commits.map(keys), [["new/1", "old/1"]]);

  const over = Promise.withResolvers<void>();
  const alone = kv.commit(new Change().delete(["old", 2]), { lingerUntil: over.promise });
  over.resolve();
  assert.equal(await flow(alone), "v1");
  assert.deepEqual(commits.map(keys).slice(1), [["old/2"]]);
});

Deno.test("a lingering change that meets those of a commit waits for the one after", async () => {
  const { kv, commits, flow } = notedKv();
  const over = Promise.withResolvers<void>();
  const lingering = kv.commit(new Change().set(["k"], 2), { lingerUntil: over.promise });
  await flow(kv.commit(new Change().set(["k"], 1)));
  assert.equal(commits.length, 1);
  over.resolve();
  await flow(lingering);
  assert.deepEqual(commits.map(({ mutations }) => mutations.map((each) => each.kind === "set" && each.value)), [[1], [
    2,
  ]]);
});

Deno.test("changes that meet at a key are never in one commit", async () => {
  const meeting: [string, Change, Change][] = [
    ["set, set", new Change().set(["k"], 1), new Change().set(["k"], 2)],
    ["set, delete", new Change().set(["k"], 1), new Change().delete(["k"])],
    ["set, check", new Change().set(["k"], 1), new Change().checkAbsent(["k"])],
    ["check, set", new Change().checkAbsent(["k"]), new Change().set(["k"], 1)],
    ["add, check", new Change().add(["k"], 1), new Change().checkAbsent(["k"])],
    ["add, set", new Change().add(["k"], 1), new Change().set(["k"], 5n)],
  ];
  for (const [name, first, second] of meeting) {
    const { kv, commits, flow } = notedKv();
    await flow(Promise.all([kv.commit(first), kv.commit(second), kv.commit(new Change().set(["other"], 1))]));
    assert.equal(commits.length, 2, name);
  }
  const { kv, commits, flow } = notedKv();
  const apart = [new Change().set(["a", 1], 1), new Change().set(["a", "1"], 1), new Change().set(["a1"], 1)];
  await flow(Promise.all(apart.map((change) => kv.commit(change))));
  assert.equal(commits.length, 1, "keys that only look alike are not the same");
});

Deno.test("a merged commit stays below the limits of the engine", async () => {
  const { kv, commits, flow } = notedKv();
  const work = [];
  for (let i = 0; i < 120; i++) {
    work.push(kv.commit(new Change().checkAbsent(["c", i]).set(["v", i], "x".repeat(20_000))));
  }
  for (let i = 0; i < 3; i++) {
    const change = new Change();
    for (let j = 0; j < 800; j++) change.delete(["d", i, j]);
    work.push(kv.commit(change));
  }
  for (let i = 0; i < 100; i++) work.push(kv.commit(new Change().delete(["long".repeat(400), i])));
  await flow(Promise.all(work));
  assert.ok(commits.length < work.length / 3, "and yet merges");
  for (const commit of commits) {
    const keyBytes = [...commit.checks, ...commit.mutations].reduce((sum, { key }) => sum + String(key[0]).length, 0);
    const bytes = commit.mutations.reduce((sum, each) => sum + (each.kind === "set" ? 20_000 : 0), 0);
    assert.ok(commit.checks.length <= 100 && commit.mutations.length <= 1_000);
    assert.ok(keyBytes <= 80 * 1024 && bytes <= 800 * 1024);
  }
});

Deno.test("when a merged commit fails its check, it is tried in halves, down to the change that lost", async () => {
  const isLoser = (change: Change) => change.checks.some((check) => check.key[0] === "taken");
  const { kv, commits, flow } = notedKv((change) => isLoser(change) ? null : "v1");
  const work = Array.from({ length: 5 }, (_, i) => {
    const change = new Change().set(["k", i], i);
    return kv.commit(i === 2 ? change.checkAbsent(["taken"]) : change);
  });
  assert.deepEqual(await flow(Promise.all(work)), ["v1", "v1", null, "v1", "v1"]);
  // All; three and two; of the three two and the loser.
  assert.equal(commits.length, 5);
});

Deno.test("a loser costs its hundred neighbours a dozen commits, and a store that fails meanwhile only its half", async () => {
  const change = (i: number, loses: boolean) => {
    const change = new Change().set(["k", i], i);
    return loses ? change.checkAbsent(["taken"]) : change;
  };
  const one = notedKv((change) => change.checks.length > 0 ? null : "v1");
  const work = Array.from({ length: 85 }, (_, i) => one.kv.commit(change(i, i === 40)));
  const versions = await one.flow(Promise.all(work));
  assert.deepEqual(versions.map((version, i) => version === null ? i : -1).filter((i) => i >= 0), [40]);
  assert.ok(one.commits.length <= 16, String(one.commits.length));

  let commits = 0;
  const failing = notedKv((change) => {
    if (++commits === 3) return new StoreError("full", "no space");
    return change.checks.length > 0 ? null : "v1";
  });
  const settled = await failing.flow(
    Promise.allSettled(Array.from({ length: 4 }, (_, i) => failing.kv.commit(change(i, i === 2)))),
  );
  assert.deepEqual(settled.map(({ status }) => status), ["fulfilled", "fulfilled", "rejected", "rejected"]);
});

Deno.test("when the store cannot write, nobody is kept waiting for further tries", async () => {
  const { kv, commits, flow } = notedKv(() => new StoreError("full", "no space"));
  const work = Array.from({ length: 5 }, (_, i) => kv.commit(new Change().set(["k", i], i)));
  const results = await flow(Promise.allSettled(work));
  assert.ok(results.every((result) => result.status === "rejected" && result.reason.code === "full"));
  assert.equal(commits.length, 1);
});

Deno.test("with several flights a change waits only for those in flight that it meets", async () => {
  const begun: string[] = [];
  const gates = new Map<string, () => void>();
  const nameOf = (change: Change) => String(change.mutations[0]?.key[0] ?? change.orderedBuilds[0]?.sequence[0]);
  const together = async (changes: readonly Change[]) => {
    const name = changes.map(nameOf).join();
    begun.push(name);
    await new Promise<void>((resolve) => gates.set(name, resolve));
    return changes.map(() => name);
  };
  const bare = { commit: async (change: Change) => (await together([change]))[0]! } as unknown as Kv;
  const limits = { checks: 90, mutations: 980, keyBytes: 76 * 1024, bytes: 760 * 1024 };
  const kv = withGroupCommit(bare, { limits, together, flights: 3 });
  const pause = () => new Promise((resolve) => setImmediate(resolve));
  const ordered = () => new Change().ordered(["sequence"], () => []);

  const first = kv.commit(new Change().set(["a"], 1));
  await pause();
  const ordering = kv.commit(ordered());
  await pause();
  const again = [kv.commit(new Change().set(["a"], 2)), kv.commit(new Change().set(["b"], 1)), kv.commit(ordered())];
  await pause();
  assert.deepEqual(begun, ["a", "sequence"], "the next one writes what is being written");
  gates.get("a")!();
  assert.equal(await first, "a");
  await pause();
  assert.deepEqual(begun, ["a", "sequence", "a,b"], "and the last one takes a place that is being taken");
  gates.get("sequence")!();
  await ordering;
  await pause();
  assert.deepEqual(begun, ["a", "sequence", "a,b", "sequence"]);
  gates.get("a,b")!();
  gates.get("sequence")!();
  assert.deepEqual(await Promise.all(again), ["a,b", "a,b", "sequence"]);
});
