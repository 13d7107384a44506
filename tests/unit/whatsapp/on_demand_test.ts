import assert from "node:assert/strict";
import { systemClock } from "../../../src/runtime.ts";
import { networkOnDemand } from "../../../src/whatsapp/network.ts";
import { FakeNetwork } from "../../support/fake_network.ts";

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
