import assert from "node:assert/strict";
import { makeSeal, sealKey } from "../../../src/store/seal.ts";
import { baileysNetwork } from "../../../src/whatsapp/baileys/network.ts";
import { isHeld } from "../../support/garbage.ts";
import { LineEvents } from "../../support/line_events.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

function stage() {
  const runtime = testRuntime();
  const network = baileysNetwork({
    runtime,
    kv: new MemoryKv(),
    seal: makeSeal(sealKey("a secret of the tests"), runtime.random),
    whatsapp: { url: "ws://127.0.0.1:1", rootKey: null, mediaUrl: null, ca: null, version: "2.3000.1" },
  });
  async function comesAndGoes() {
    const events = new LineEvents();
    const connection = await network.open(
      { lineId: "ses_1", restriction: null, proxy: null, pairingPhone: null },
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
