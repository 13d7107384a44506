/** The contract of the port to the network, on Baileys; and what only this engine can show. */
import assert from "node:assert/strict";
import { openDenoKv } from "../../src/store/deno_kv.ts";
import { makeSeal, sealKey } from "../../src/store/seal.ts";
import { baileysNetwork } from "../../src/whatsapp/baileys/network.ts";
import { connectionContract, type EngineOptions, scanning, withScene } from "../support/connection_suite.ts";

/** Baileys on a store in the test's folder. */
async function openBaileys({ simulated, runtime, folder }: EngineOptions, options: { refreshHandled?: boolean } = {}) {
  const ca = `${folder}/ca.pem`;
  await Deno.writeTextFile(ca, simulated.caPem);
  const kv = await openDenoKv(`${folder}/store/kv.sqlite3`, { runtime });
  const { url, rootKey, mediaUrl } = simulated;
  const whatsapp = { url, rootKey, mediaUrl, ca, version: null };
  const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
  const network = baileysNetwork({ runtime, kv, seal, whatsapp, ...options });
  return {
    network,
    close: () => {
      kv.close();
      return Promise.resolve();
    },
  };
}

connectionContract("Baileys", (options) => openBaileys(options));

Deno.test({
  name: "Baileys: without our handling of the refresh stage linking fails",
  sanitizeOps: false,
  sanitizeResources: false,
  fn: () =>
    withScene((options) => openBaileys(options, { refreshHandled: false }), async (scene) => {
      const { events } = scene.open({ events: scanning(scene.owner) });
      await events.until("qr");
      for (let passed = 0; passed < 160_000; passed += 20_000) {
        await scene.owner.idle();
        await scene.clock.advance(20_000);
      }
      assert.equal((await events.until("closed")).reason.kind, "link_expired");
      assert.deepEqual(events.of("linked"), []);
      assert.equal(await scene.network.isLinked("ses_contract"), false);
    }),
});
