/** The addresses of numbers are asked for once a week, and go when they are not believed any more. */
import assert from "node:assert/strict";
import { networkKeys, sweepExpired } from "../../../../src/whatsapp/baileys/rows.ts";
import { eraseTraces } from "../../../../src/whatsapp/baileys/erase.ts";
import { AuthState } from "../../../../src/whatsapp/baileys/auth_state.ts";
import { makeRecipients } from "../../../../src/whatsapp/baileys/outgoing/addressing.ts";
import { Traces } from "../../../../src/whatsapp/person.ts";
import { StoreError } from "../../../../src/store/kv.ts";
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
  const seal = makeSeal(sealKey("a secret of the tests"), runtime.random);
  const connection = () => new AuthState({ kv, seal, lineId: LINE }, null);
  // Another connection each time: it remembers nothing.
  const recipients = (auth = connection()) => makeRecipients({ socket, kv, auth, lineId: LINE, runtime });
  return { runtime, kv, seal, asked, rows, connection, recipients };
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

Deno.test("many numbers are asked for together, and remembered", async () => {
  const { kv, connection, runtime } = stage();
  const queries: string[][] = [];
  const correct = (number: string) => number.replace(/^521/, "52");
  const socket = {
    onWhatsApp(...numbers: string[]) {
      queries.push(numbers);
      const known = numbers.filter((number) => !number.endsWith("9"));
      return Promise.resolve(known.map((number) => ({ jid: `${correct(number)}@s.whatsapp.net`, exists: true })));
    },
  };
  const recipients = makeRecipients({ socket, kv, auth: connection(), lineId: LINE, runtime });
  const numbers = Array.from({ length: 600 }, (_, i) => `34600000${String(i).padStart(3, "0")}`);
  const jids = await recipients.jidsOf(numbers);
  assert.deepEqual([...jids], numbers.map((n) => [n, n.endsWith("9") ? null : `${n}@s.whatsapp.net`]));
  assert.deepEqual(queries.map(({ length }) => length), [250, 250, 100]);
  assert.equal(await recipients.jidOf(numbers[0]!), `${numbers[0]}@s.whatsapp.net`);
  assert.equal(queries.length, 3);

  const corrected = await recipients.jidsOf(["5215500000001", numbers[1]!, "5215500000009"]);
  assert.deepEqual([...corrected.values()], ["525500000001@s.whatsapp.net", `${numbers[1]}@s.whatsapp.net`, null]);
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
  const { kv, seal, rows, recipients } = stage();
  await recipients().check("34600000001");
  await eraseTraces({ kv, seal, lineId: LINE }, new Traces({ number: "34600000001", lids: [] }), null);
  assert.equal(await rows(), 0);
});

Deno.test("what the network says of a number when the connection has ended is written nowhere", async () => {
  const { rows, connection, recipients } = stage();
  const auth = connection();
  await auth.close();
  await assert.rejects(recipients(auth).check("34600000001"), StoreError);
  assert.equal(await rows(), 0);
});
