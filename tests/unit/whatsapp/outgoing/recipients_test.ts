/** The addresses of numbers are asked for once a week, and go when they are not believed any more. */
import assert from "node:assert/strict";
import { sweepExpired } from "../../../../src/whatsapp/baileys/expiry.ts";
import { eraseTraces } from "../../../../src/whatsapp/baileys/erase.ts";
import { makeRecipients } from "../../../../src/whatsapp/baileys/outgoing/recipients.ts";
import { networkKeys } from "../../../../src/whatsapp/baileys/rows.ts";
import { Traces } from "../../../../src/whatsapp/person.ts";
import { makeSeal, sealKey } from "../../../../src/store/seal.ts";
import { MemoryKv } from "../../../support/memory_kv.ts";
import { testRuntime } from "../../../support/runtime.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const LINE = "ses_1";

function stage() {
  const runtime = testRuntime();
  const kv = new MemoryKv();
  const asked: string[] = [];
  const socket = {
    onWhatsApp: (...numbers: string[]) => {
      asked.push(...numbers);
      return Promise.resolve(numbers.map((number) => ({ jid: `${number}@s.whatsapp.net`, exists: true })));
    },
  };
  const rows = async () =>
    (await Promise.all([networkKeys.waLine(LINE), networkKeys.waExpiries()]
      .map((prefix) => Array.fromAsync(kv.list({ prefix }))))).flat().length;
  // Another connection each time: it remembers nothing.
  const recipients = () => makeRecipients({ socket, kv, lineId: LINE, runtime });
  return { runtime, kv, asked, rows, recipients };
}

Deno.test("a number is asked for once a week, while it is written to every day", async () => {
  const { runtime, kv, asked, recipients } = stage();
  for (let day = 0; day < 28; day++) {
    assert.equal(await recipients().jidOf("34600000001"), "34600000001@s.whatsapp.net");
    await runtime.clock.advance(DAY_MS);
    await sweepExpired(kv, runtime.clock.now());
  }
  assert(asked.length <= 4, `${asked.length} questions in four weeks`);
});

Deno.test("of a number that is not written to any more nothing is kept", async () => {
  const { runtime, kv, rows, recipients } = stage();
  await recipients().check("34600000001");
  await runtime.clock.advance(3 * DAY_MS);
  await recipients().check("34600000001");
  await sweepExpired(kv, runtime.clock.now());
  assert((await rows()) > 0);
  await runtime.clock.advance(9 * DAY_MS);
  await sweepExpired(kv, runtime.clock.now());
  assert.equal(await rows(), 0);
});

Deno.test("a person who is erased is not named by when the address ends either", async () => {
  const { runtime, kv, rows, recipients } = stage();
  await recipients().check("34600000001");
  const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
  await eraseTraces({ kv, seal, lineId: LINE }, new Traces({ number: "34600000001", lids: [] }), null);
  assert.equal(await rows(), 0);
});
