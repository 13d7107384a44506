import assert from "node:assert/strict";
import { Chats } from "../../../src/line/chats.ts";
import { MemoryKv } from "../../support/memory_kv.ts";

const HOUR_MS = 3_600_000;
const START = Date.UTC(2026, 0, 1);

Deno.test("a chat that wrote more than a day ago is remembered no longer, on a line that sends nothing either", async () => {
  const chats = new Chats(new MemoryKv(), "ses_1");
  const hear = (chat: string, at: number) => chats.heard(chat, { at, now: at });
  for (let hour = 0; hour < 72; hour++) {
    hear("regular", START + hour * HOUR_MS);
    hear(`passer-by ${hour}`, START + hour * HOUR_MS);
  }
  const now = START + 71 * HOUR_MS;
  const remembered = await chats.load(now);
  assert.equal(remembered.length, 1 + 24);
  assert(remembered.every((chat) => chats.wroteLately(chat, now)));
});
