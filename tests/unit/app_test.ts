/** The start of a gateway fails at each of its steps in turn: nothing may stay open, and the next start works. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";
import { listenOn } from "../../src/base/listening.ts";
import { startGateway } from "../../src/app.ts";
import { openData } from "../../src/engines.ts";
import { type Config, readConfig } from "../../src/config.ts";
import { lockGateway, pathsOf } from "../../src/data/data_folder.ts";
import { lineKeys } from "../../src/line/rows.ts";
import { type Clock, makeIds, type Runtime, systemRandom } from "../../src/runtime.ts";
import { denoKvFiles } from "../../src/store/deno_kv/file_engine.ts";
import { Change } from "../../src/store/kv.ts";
import { webhookKeys } from "../../src/webhook/rows.ts";
import type { Network } from "../../src/whatsapp/network.ts";
import { FakeNetwork } from "../support/fake_network.ts";
import { confirmedBy, testRuntime } from "../support/runtime.ts";
import { tempFolder } from "../support/temp_folder.ts";

/** The real clock, which knows what it has been asked for and not told to forget. */
function countedClock(): Clock & { pending: Set<unknown> } {
  const pending = new Set<unknown>();
  return {
    pending,
    now: () => Date.now(),
    after(delayMs, run) {
      const timer = setTimeout(() => {
        pending.delete(timer);
        run();
      }, Math.max(0, delayMs));
      pending.add(timer);
      return () => {
        clearTimeout(timer);
        pending.delete(timer);
      };
    },
  };
}

interface World {
  config: Config;
  runtime: Runtime;
  clock: ReturnType<typeof countedClock>;
  openNetwork: () => Network;
}

/** Spoils one step of the start; the function that it returns mends it. */
type Fault = (world: World) => Promise<() => unknown>;

/** A row that its room cannot read. */
function spoiledRow(key: readonly string[]): Fault {
  return async ({ config, runtime }) => {
    const write = async (change: Change) => {
      const data = await openData(config, runtime);
      await data.kv.commit(change);
      data.close();
    };
    await write(new Change().set(key, null));
    return () => write(new Change().delete(key));
  };
}

const FAULTS: Record<string, Fault> = {
  "another gateway holds the folder": async ({ config }) => {
    const lock = await lockGateway(config.dataDir, denoKvFiles);
    return () => lock.release();
  },
  "the secret key is not the data's": async ({ config, runtime }) => {
    (await openData(config, runtime)).close();
    config.secretKey = "another key than it was";
    return () => config.secretKey = null;
  },
  "the data is newer": async ({ config, runtime }) => {
    const data = await openData(config, runtime);
    const version = await data.kv.get(["meta", "schema_version"]);
    await data.kv.commit(new Change().set(["meta", "schema_version"], 99));
    data.close();
    return async () => {
      const kv = await denoKvFiles.open(pathsOf(config.dataDir).store, { runtime });
      await kv.commit(new Change().set(["meta", "schema_version"], version.value));
      kv.close();
    };
  },
  "the media folder is a file": async ({ config }) => {
    await Deno.mkdir(config.dataDir, { recursive: true });
    await Deno.writeTextFile(join(config.dataDir, "media"), "");
    return () => Deno.remove(join(config.dataDir, "media"));
  },
  "the network cannot be opened": (world) => {
    const { openNetwork } = world;
    world.openNetwork = () => {
      throw new Error("no such CA file");
    };
    return Promise.resolve(() => world.openNetwork = openNetwork);
  },
  "the port is taken": async ({ config }) => {
    const taken = createServer();
    config.port = await listenOn(taken);
    return () => new Promise((resolve) => taken.close(resolve)).then(() => config.port = 0);
  },
  "a webhook cannot be read": spoiledRow(webhookKeys.webhook("acc_1", "whk_1") as readonly string[]),
  "a line cannot be read": spoiledRow(lineKeys.line("ses_1") as readonly string[]),
};

for (const [name, fault] of Object.entries(FAULTS)) {
  Deno.test(`a start that fails leaves nothing open, and the next one works: ${name}`, async () => {
    await using temp = await tempFolder();
    const clock = countedClock();
    const runtime = {
      clock,
      confirmed: confirmedBy(clock),
      random: systemRandom,
      ids: makeIds(clock, systemRandom),
      log: testRuntime().log,
    };
    const config = readConfig({ PALOMA_DATA_DIR: join(temp.path, "data"), PALOMA_PORT: "0" });
    const world: World = { config, runtime, clock, openNetwork: () => new FakeNetwork(clock) };
    const mend = await fault(world);
    await assert.rejects(startGateway(world));
    assert.equal(clock.pending.size, 0, "timers are left");
    await mend();
    // Only a gateway that let go of lock, store and port lets another one have them.
    const gateway = await startGateway(world);
    const answer = await fetch(`${gateway.baseUrl}/account`);
    await answer.body?.cancel();
    assert.equal(answer.status, 401);
    await gateway.stop();
    await gateway.stop();
    assert.equal(clock.pending.size, 0, "timers are left");
  });
}
