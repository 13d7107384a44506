import assert from "node:assert/strict";
import { Change } from "../../../src/store/kv.ts";
import { eraseKeys } from "../../../src/whatsapp/baileys/erase.ts";
import { networkKeys } from "../../../src/whatsapp/baileys/rows.ts";
import { Traces } from "../../../src/whatsapp/person.ts";
import { MemoryKv } from "../../support/memory_kv.ts";

Deno.test("the keys of one person go but for whose a @lid is, and of nobody whose number begins with the same digits", async () => {
  const kv = new MemoryKv();
  const theirs = [
    ["session", "1234.0"],
    ["session", "1234_1.12"],
    ["identity-key", "34600000001.0"],
    ["device-list", "1234"],
    ["tctoken", "1234@lid"],
  ] as const;
  const others = [
    ["lid-mapping", "34600000001"],
    ["lid-mapping", "1234_reverse"],
    ["session", "12345.0"],
    ["session", "123.0"],
    ["device-list", "346000000012"],
    ["sender-key", "34600000002-1500@g.us::34600000002::0"],
    ["pre-key", "1234"],
  ] as const;
  const change = new Change();
  for (const [type, id] of [...theirs, ...others]) change.set(networkKeys.waKey("ses_1", type, id), new Uint8Array(1));
  await kv.commit(change.set(networkKeys.waKey("ses_2", "session", "1234.0"), new Uint8Array(1)));

  await eraseKeys(kv, "ses_1", new Traces({ number: "34600000001", lids: ["1234@lid"] }));
  const left = await Array.fromAsync(kv.list({ prefix: networkKeys.waLine("ses_1") }));
  assert.deepEqual(left.map(({ key }) => key.slice(3)), others.map((other) => [...other]).sort());
  assert.equal((await Array.fromAsync(kv.list({ prefix: networkKeys.waLine("ses_2") }))).length, 1);
});
