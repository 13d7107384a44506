import assert from "node:assert/strict";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";
import { baileysNetwork } from "../../../src/whatsapp/baileys/network.ts";
import { isHeld } from "../../support/garbage.ts";
import { LineEvents } from "../../support/line_events.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";
import { systemClock } from "../../../src/runtime.ts";
import { networkOnDemand } from "../../../src/whatsapp/network.ts";
import { FakeNetwork } from "../../support/fake_network.ts";
import { UNHEARD } from "../../support/unheard.ts";

function stage() {
  const runtime = testRuntime();
  const kv = new MemoryKv();
  const network = baileysNetwork({
    ...UNHEARD,
    runtime,
    kv,
    storeOf: () => kv,
    seal: makeSeal(sealKey("a secret of the tests"), runtime.random),
    whatsapp: { url: "ws://127.0.0.1:1", rootKey: null, mediaUrl: null, ca: null, version: "2.3000.1" },
  });
  async function comesAndGoes() {
    const events = new LineEvents();
    const connection = await network.open(
      { lineId: "ses_1", accountId: "acc_1", restriction: null, proxy: null, pairingPhone: null },
      events,
    );
    await events.until("closed");
    const { ended } = connection as unknown as { ended: Promise<void> };
    await ended;
    return { events: new WeakRef(events), ended: new WeakRef(ended) };
  }
  return { network, comesAndGoes };
}

Deno.test("whoever heard a line's connection is let go of when that has ended: the line may be another process's", async () => {
  const { comesAndGoes } = stage();
  const { events } = await comesAndGoes();
  assert.equal(await isHeld(events), false);
});

Deno.test("of a line that is unlinked nothing is kept in memory", async () => {
  const { network, comesAndGoes } = stage();
  const { ended } = await comesAndGoes();
  await network.forget("ses_1", () => Promise.resolve(true));
  assert.equal(await isHeld(ended), false);
});

function engine(): FakeNetwork {
  const network = new FakeNetwork(systemClock);
  network.linked.add("line");
  return network;
}

Deno.test("the engine is loaded once, when something first needs it", async () => {
  let loads = 0;
  const network = networkOnDemand(() => {
    loads++;
    return Promise.resolve(engine());
  });
  assert.equal(network.webVersion(), null);
  assert.equal(await network.sweep(), 0);
  assert.equal(loads, 0);
  assert.deepEqual(await Promise.all([network.isLinked("line"), network.isLinked("line")]), [true, true]);
  assert.equal(loads, 1);
});

Deno.test("an engine that could not be loaded is tried again at the next need", async () => {
  const answers = [() => Promise.reject(new Error("the CA file is missing")), () => Promise.resolve(engine())];
  const network = networkOnDemand(() => answers.shift()!());
  const both = await Promise.allSettled([network.isLinked("line"), network.isLinked("line")]);
  assert.deepEqual(both.map(({ status }) => status), ["rejected", "rejected"]);
  assert.equal(answers.length, 1);
  assert.equal(await network.isLinked("line"), true);
});
