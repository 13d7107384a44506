import assert from "node:assert/strict";
import { MessageRetryManager } from "@whiskeysockets/baileys/lib/Utils/message-retry-manager.js";
import pino from "pino";
import { leaveOutStored } from "../../../../src/whatsapp/baileys/repairs/recent_messages.ts";

Deno.test("the library remembers what it sent, but for what the store has", () => {
  const manager = new MessageRetryManager(pino({ level: "silent" }), 5);
  leaveOutStored(manager, (networkId) => networkId === "STORED");
  manager.addRecentMessage("ana@lid", "STORED", { conversation: "hello" });
  manager.addRecentMessage("ana@lid", "OTHER", { conversation: "hello" });
  assert.equal(manager.getRecentMessage("ana@lid", "STORED"), undefined);
  assert.deepEqual(manager.getRecentMessage("ana@lid", "OTHER")?.message, { conversation: "hello" });
  manager.clear();
});
