import assert from "node:assert/strict";
import { startServices } from "../../../src/base/service.ts";
import { readConfig } from "../../../src/config.ts";
import { openDataFolder } from "../../../src/data/data_folder.ts";
import { eventKeys } from "../../../src/event/rows.ts";
import { withFairWrites } from "../../../src/media/fair_shares.ts";
import { noMediaStore } from "../../../src/media/store.ts";
import { makeContext } from "../../../src/roles/context.ts";
import { makeWorker } from "../../../src/roles/worker.ts";
import { Change, type Key } from "../../../src/store/kv.ts";
import { type ChunkedKv, withChunks } from "../../../src/store/layers/chunk.ts";
import { webhookKeys } from "../../../src/webhook/rows.ts";
import { testBell, testEvents } from "../../support/bell.ts";
import { FakeNetwork } from "../../support/fake_network.ts";
import { MemoryDisk, MemoryKv } from "../../support/memory_kv.ts";
import { ManualClock, settle, testRuntime } from "../../support/runtime.ts";

const ACCOUNT = "acc_1";
const DAY_MS = 24 * 3_600_000;
const config = readConfig({ PALOMA_STORE: "postgres://nowhere/at-all", PALOMA_SECRET_KEY: "a secret of two machines" });

/** A worker on the shared disk; `seed` tells it from others. */
async function startWorker(disk: MemoryDisk, { clock, seed }: { clock: ManualClock; seed: number }) {
  const runtime = testRuntime(seed, clock);
  const own = withChunks(new MemoryKv(disk), { runtime });
  let halt: { at: Key; reached: () => void } | null = null;
  let goOn: PromiseWithResolvers<void> | null = null;
  const kv: ChunkedKv = {
    ...own,
    async get(key) {
      await goOn?.promise;
      return await own.get(key);
    },
    async getMany(keys) {
      await goOn?.promise;
      return await own.getMany(keys);
    },
    async *list(range, options) {
      if (halt && `${range.prefix}` === `${halt.at}`) {
        halt.reached();
        [halt, goOn] = [null, Promise.withResolvers()];
      }
      await goOn?.promise;
      yield* own.list(range, options);
    },
    async commit(change, options) {
      await goOn?.promise;
      return await own.commit(change, options);
    },
  };
  const openStore = () => Promise.resolve(kv);
  const data = await openDataFolder(config, { runtime, migrations: [], contents: new Set(), openStore });
  const context = makeContext({
    config,
    runtime,
    data,
    bell: testBell(runtime),
    media: withFairWrites(noMediaStore(), clock),
    hasChanged: () => true,
    place: null,
    engine: { load: () => Promise.resolve(), open: () => new FakeNetwork(clock) },
    url: () => "http://127.0.0.1",
  });
  const { services } = await makeWorker(context);
  const running = new AsyncDisposableStack();
  await clock.during(startServices(running, services));
  return {
    kv,
    runtime,
    stop: () => clock.during(running.disposeAsync()),
    /** Suspends the process when it next lists that family; resolves then. */
    haltsAt: (at: Key) => new Promise<void>((reached) => halt = { at, reached }),
    async goesOn() {
      goOn?.resolve();
      goOn = null;
      await settle(50);
    },
  };
}

async function logEvents(kv: ChunkedKv, runtime: ReturnType<typeof testRuntime>, count: number): Promise<void> {
  const events = testEvents(kv, runtime);
  for (let i = 0; i < count; i++) {
    const change = new Change();
    const data = { qr: `data:${i}` };
    events.append(change, { event: "session.qr", accountId: ACCOUNT, sessionId: "ses_1", sessionName: "", data });
    assert.ok(await kv.commit(change));
  }
}

Deno.test("a sweep of a worker that was suspended writes nothing after another worker has taken over", async () => {
  const [disk, clock] = [new MemoryDisk(), new ManualClock()];
  const before = withChunks(new MemoryKv(disk), { runtime: testRuntime(9, clock) });
  await logEvents(before, testRuntime(9, clock), 3);
  await clock.advance(31 * DAY_MS);
  await logEvents(before, testRuntime(9, clock), 2);
  const counted = async () => (await Array.fromAsync(before.list({ prefix: eventKeys.events(ACCOUNT) }))).length;

  const first = await startWorker(disk, { clock, seed: 1 });
  // The three old events were read, and are not removed yet.
  await clock.during(first.haltsAt(webhookKeys.webhooksOfAccount(ACCOUNT)));
  const second = await startWorker(disk, { clock, seed: 2 });
  for (let s = 0; s < 60 && await counted() === 5; s++) await clock.advance(1_000);
  assert.equal(await counted(), 2);

  await first.goesOn();
  await clock.advance(5_000);
  assert.equal(await counted(), 2);
  assert.ok(first.runtime.lines.some(({ sweep, level }) => sweep === "events" && level === 40));
  await first.stop();
  await second.stop();
});
