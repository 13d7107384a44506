/** The line's own profile, without a socket. */
import assert from "node:assert/strict";
import type { WASocket } from "@whiskeysockets/baileys";
import { makeContacts, makeNames } from "../../../src/whatsapp/baileys/chats/contacts.ts";
import { testRuntime } from "../../support/runtime.ts";

Deno.test("a new name goes out with the presence, although the library holds back what else comes of it", async () => {
  const creds = { me: { id: "551@s.whatsapp.net", name: "Old" } };
  const heldBack: unknown[] = [];
  const announced: string[] = [];
  const socket = {
    authState: { creds },
    ev: { emit: (_: string, update: unknown) => heldBack.push(update) },
    sendPresenceUpdate: () => Promise.resolve(announced.push(creds.me.name)),
  } as unknown as WASocket;
  const contacts = makeContacts({
    socket,
    recipients: { check: () => assert.fail("nobody is asked about") },
    names: makeNames(),
    me: () => ({ id: creds.me.id, lid: undefined, name: creds.me.name }),
    runtime: testRuntime(),
  });
  await contacts.changeProfile({ name: "Shop" });
  assert.deepEqual(announced, ["Shop"]);
  assert.deepEqual(heldBack, [{ me: { id: "551@s.whatsapp.net", name: "Shop" } }], "and is kept");
});
