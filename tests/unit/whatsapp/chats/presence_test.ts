import assert from "node:assert/strict";
import type { BinaryNode } from "@whiskeysockets/baileys";
import { makePresence } from "../../../../src/whatsapp/baileys/chats/presence.ts";
import { testRuntime } from "../../../support/runtime.ts";

Deno.test("a line is available for a minute after it last showed its state, whatever the library tells meanwhile", async () => {
  const runtime = testRuntime();
  const told: string[] = [];
  const sendNode = ({ attrs }: BinaryNode) => Promise.resolve(void told.push(attrs.type!));
  const presence = makePresence({ sendNode }, runtime);
  const after = async (ms: number) => {
    await runtime.clock.advance(ms);
    presence.look();
    return told.splice(0);
  };
  presence.repeat();
  assert.deepEqual(await after(0), ["unavailable"]);
  await presence.appear();
  presence.repeat();
  assert.deepEqual(await after(59_000), ["available", "available"]);
  await presence.appear();
  assert.deepEqual(await after(59_000), ["available"]);
  assert.deepEqual(await after(1_000), ["unavailable"]);
  assert.deepEqual(await after(60_000), []);
});
