import assert from "node:assert/strict";
import { Change, StoreError } from "../../../src/store/kv.ts";
import { Cluster, written } from "../../support/cluster.ts";
import { WRONG_CLOCKS } from "../../support/skewed_clock.ts";

/** Workers that hold all lines evenly. */
async function settled({ workers, lines }: { workers: number; lines: number }) {
  const cluster = new Cluster(lines);
  await cluster.makeLines();
  for (let i = 0; i < workers; i++) await cluster.join();
  await cluster.until(() => cluster.isEven, 20_000);
  return { cluster, workers: [...cluster.workers] };
}

Deno.test("workers that start together share all lines evenly, and no line has two sockets", async () => {
  const { cluster } = await settled({ workers: 4, lines: 30 });
  assert.deepEqual(cluster.spread(), [7, 7, 8, 8]);
  await cluster.clock.advance(10_000);
  assert.equal(cluster.doubled, 0);
  assert.ok(cluster.isEven);
});

Deno.test("the lines of a killed worker are on other sockets within 10 s, evenly", async () => {
  const { cluster, workers } = await settled({ workers: 3, lines: 30 });
  workers[1]!.kill();
  const took = await cluster.until(() => cluster.isEven, 20_000);
  assert.ok(took < 10_000, `${took} ms`);
  assert.deepEqual(cluster.spread(), [15, 15]);
});

Deno.test("the lines of a killed worker do not wait for another one that was killed after it", async () => {
  const { cluster, workers } = await settled({ workers: 4, lines: 40 });
  const orphans = [...workers[1]!.open];
  workers[1]!.kill();
  await cluster.clock.advance(3_000);
  workers[2]!.kill();
  const others = [workers[0]!, workers[3]!];
  const took = await cluster.until(() => orphans.every((line) => others.some(({ open }) => open.has(line))), 20_000);
  assert.ok(3_000 + took < 7_500, `${3_000 + took} ms`);
  await cluster.until(() => cluster.isEven, 20_000);
});

Deno.test("whoever comes in the middle of a silence goes on from what the others have seen of it", async () => {
  const { cluster, workers } = await settled({ workers: 2, lines: 10 });
  const orphans = [...workers[0]!.open];
  workers[0]!.kill();
  await cluster.clock.advance(3_500);
  const heir = await cluster.join();
  await cluster.clock.advance(1_000);
  workers[1]!.kill();
  const took = await cluster.until(() => orphans.every((line) => heir.open.has(line)), 20_000);
  assert.ok(4_500 + took < 8_000, `${4_500 + took} ms: nobody began to count anew`);
});

Deno.test("a worker that stands still again and again takes the lines of a dead one all the same", async () => {
  const { cluster, workers } = await settled({ workers: 2, lines: 10 });
  workers[0]!.kill();
  for (let i = 0; i < 8; i++) {
    workers[1]!.freeze();
    await cluster.clock.advance(2_900);
    workers[1]!.thaw();
    await cluster.clock.advance(100);
  }
  await cluster.until(() => workers[1]!.open.size === 10, 3_000);
});

Deno.test("a killed worker that is started again in its place takes its lines up at once", async () => {
  const alone = await settled({ workers: 1, lines: 30 });
  alone.workers[0]!.kill();
  await alone.cluster.join(alone.workers[0]!.name);
  const took = await alone.cluster.until(() => alone.cluster.isEven, 20_000);
  assert.ok(took < 1_500, `${took} ms`);

  const { cluster, workers } = await settled({ workers: 3, lines: 30 });
  workers[1]!.kill();
  await cluster.join(workers[1]!.name);
  const among = await cluster.until(() => cluster.isEven, 20_000);
  assert.ok(among < 5_000, `${among} ms: nobody waited until it was silent for long enough`);
  assert.equal(cluster.doubled, 0);
});

Deno.test("a worker that comes gets its share within 20 s, and one that goes leaves none behind", async () => {
  const { cluster, workers } = await settled({ workers: 2, lines: 31 });
  await cluster.join();
  const took = await cluster.until(() => cluster.isEven, 30_000);
  assert.ok(took < 20_000, `${took} ms`);
  let stopped = false;
  void workers[0]!.stop().then(() => stopped = true);
  await cluster.until(() => stopped && cluster.isEven, 20_000);
  assert.equal(workers[0]!.open.size, 0);
  assert.equal(cluster.doubled, 0);
});

Deno.test("a worker that stood still and comes back writes nothing for what is not its any more, and joins anew", async () => {
  const { cluster, workers } = await settled({ workers: 2, lines: 6 });
  const frozen = workers[0]!;
  const [line] = frozen.open;
  const store = frozen.storeOf(line!)!;
  await store.commit(new Change().set(written(line!), "before"));
  frozen.freeze();
  await cluster.until(() => workers[1]!.open.size === 6, 10_000);
  frozen.thaw();
  await assert.rejects(store.commit(new Change().set(written(line!), "late")), { name: "Fenced" });
  assert.equal((await store.get(written(line!))).value, "before");
  assert.ok(frozen.refused > 0);
  await cluster.until(() => cluster.isEven && cluster.doubled === 0, 20_000);
});

Deno.test("a short silence costs nobody anything", async () => {
  const { cluster, workers } = await settled({ workers: 2, lines: 6 });
  const before = [...workers[0]!.open];
  workers[0]!.freeze();
  await cluster.clock.advance(3_000);
  workers[0]!.thaw();
  await cluster.clock.advance(5_000);
  assert.deepEqual([...workers[0]!.open], before);
});

Deno.test("when the store was away for all, nobody is taken for dead, and no line moves", async () => {
  const { cluster, workers } = await settled({ workers: 3, lines: 9 });
  const before = workers.map(({ open }) => [...open]);
  for (const { kv } of workers) kv.trouble = new StoreError("unavailable", "away");
  await cluster.clock.advance(20_000);
  for (const { kv } of workers) kv.trouble = null;
  await cluster.clock.advance(10_000);
  assert.deepEqual(workers.map(({ open }) => [...open]), before);
  assert.equal(cluster.setbacks, 0);
});

Deno.test("a worker that goes while the store is away ends its work all the same, and its lines are taken later", async () => {
  const { cluster, workers } = await settled({ workers: 2, lines: 6 });
  const [going, staying] = workers;
  going!.kv.trouble = new StoreError("unavailable", "away");
  const gone = going!.stop();
  await Promise.all([gone, cluster.clock.advance(5_000)]);
  assert.equal(going!.open.size, 0);
  await cluster.until(() => staying!.open.size === 6, 20_000);
});

Deno.test("where the store has lost its last commits, each line soon has one socket, of a worker that may write for it", async () => {
  for (const lostMs of [300, 1_200, 2_500, 6_000]) {
    const { cluster, workers } = await settled({ workers: 3, lines: 12 });
    await cluster.join();
    await cluster.clock.advance(2_000);
    const lose = cluster.lag();
    // Lines move in what is lost: to the newcomer, and from one that goes, and one that dies.
    void workers[0]!.stop();
    await cluster.clock.advance(lostMs / 2);
    workers[1]!.kill();
    await cluster.join();
    await cluster.clock.advance(lostMs / 2);
    lose();
    await cluster.until(() => cluster.workers.size === 3 && cluster.isEven && cluster.doubled === 0, 20_000);
    await cluster.clock.advance(3_000);
    assert.ok(cluster.isEven && cluster.doubled === 0, `${lostMs}`);
    assert.ok(await cluster.canWrite(), `${lostMs}`);
    assert.ok(cluster.setbacks > 0 || lostMs < 1_000, `${lostMs}: nobody has found out`);
  }
});

for (const [name, ms] of WRONG_CLOCKS) {
  Deno.test(`a worker whose clock is set ${name} takes no line of others and loses none of its own`, async () => {
    const { cluster, workers } = await settled({ workers: 3, lines: 9 });
    const owned = () => workers.map(({ open }) => [...open]);
    const before = owned();
    workers[0]!.clock.jump(ms);
    await cluster.clock.advance(20_000);
    assert.deepEqual(owned(), before);
    workers[0]!.clock.jump(-ms);
    await cluster.clock.advance(20_000);
    assert.deepEqual(owned(), before);
    assert.ok(await cluster.canWrite());
  });

  Deno.test(`a worker that begins with a clock that is ${name} shares the lines, and a dead one is noticed in time`, async () => {
    const { cluster, workers } = await settled({ workers: 2, lines: 9 });
    const wrong = await cluster.join("wrong", ms);
    await cluster.until(() => cluster.isEven, 30_000);
    assert.equal(wrong.open.size, 3);
    workers[0]!.kill();
    // Nobody but the wrong one and one other can notice it.
    const took = await cluster.until(() => cluster.isEven, 20_000);
    assert.ok(took > 4_000 && took < 10_000, `${took} ms`);
    wrong.kill();
    const other = await cluster.until(() => cluster.isEven, 20_000);
    assert.ok(other > 4_000 && other < 10_000, `${other} ms`);
    assert.equal(cluster.doubled, 0);
  });
}
