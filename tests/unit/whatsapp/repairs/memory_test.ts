import assert from "node:assert/strict";
import { LIDMappingStore } from "@whiskeysockets/baileys/lib/Signal/lid-mapping.js";
import { MessageRetryManager } from "@whiskeysockets/baileys/lib/Utils/message-retry-manager.js";
import pino from "pino";
import { boundNames, keepNoRecent } from "../../../../src/whatsapp/baileys/repairs/memory.ts";

Deno.test("the library remembers no message, for it would send those of others to whoever asks", () => {
  const manager = new MessageRetryManager(pino({ level: "silent" }), 5);
  keepNoRecent(manager);
  manager.addRecentMessage("ana@lid", "3A", { conversation: "hello" });
  assert.equal(manager.getRecentMessage("ana@lid", "3A"), undefined);
  manager.clear();
});

Deno.test("of the names of people the library remembers the last ones, and asks the store for the others", async () => {
  const asked: string[] = [];
  const keys = {
    get(_type: string, ids: string[]) {
      asked.push(...ids);
      return Promise.resolve(Object.fromEntries(ids.map((id) => [id, `9${id}`])));
    },
  };
  const store = new LIDMappingStore(keys as never, pino({ level: "silent" }));
  boundNames(store);
  const lidOf = (i: number) => store.getLIDForPN(`${34_600_000_000 + i}@s.whatsapp.net`);
  for (let i = 0; i <= 5_000; i++) assert.equal(await lidOf(i), `9${34_600_000_000 + i}@lid`);
  assert.equal(asked.length, 5_001);
  for (const i of [5_000, 0]) await lidOf(i);
  assert.deepEqual(asked.slice(5_001), ["34600000000"]);
});
