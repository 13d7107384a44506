/** The line's own profile, without a socket. */
import assert from "node:assert/strict";
import { type AuthenticationCreds, initAuthCreds, type WASocket } from "@whiskeysockets/baileys";
import { makeContacts, makeNames } from "../../../../src/whatsapp/baileys/chats/contacts.ts";
import { correctMessage } from "../../../../src/whatsapp/baileys/incoming/stanzas.ts";
import { testRuntime } from "../../../support/runtime.ts";

/** The profile of a line called "Old", and what leaves it. */
function scene() {
  const creds: AuthenticationCreds = { ...initAuthCreds(), me: { id: "551:7@s.whatsapp.net", name: "Old" } };
  const heldBack: unknown[] = [];
  const announced: unknown[] = [];
  const socket = {
    authState: { creds },
    ev: { emit: (_: string, update: unknown) => heldBack.push(update) },
    sendPresenceUpdate: () => Promise.resolve(announced.push(creds.me?.name)),
  } as unknown as WASocket;
  const runtime = testRuntime();
  const contacts = makeContacts({
    socket,
    recipients: { check: () => assert.fail("nobody is asked about") },
    names: makeNames(),
    me: () => ({ id: creds.me!.id, name: creds.me!.name! }),
    withFiles: (work) => work(),
    runtime,
  });
  return { contacts, creds, heldBack, announced, clock: runtime.clock };
}

Deno.test("a new name goes out with the presence, although the library holds back what else comes of it", async () => {
  const { contacts, heldBack, announced } = scene();
  await contacts.changeProfile({ name: "Shop" });
  assert.deepEqual(announced, ["Shop"]);
  assert.deepEqual(heldBack, [{ me: { id: "551:7@s.whatsapp.net", name: "Shop" } }], "and is kept");
});

Deno.test("what the owner's phone sent before a line was renamed does not give it back its old name", async () => {
  const { contacts, creds, clock } = scene();
  const seconds = Math.floor(clock.now() / 1000);
  /** The name in a message, as the library gets it. */
  const nameIn = (attrs: Record<string, string>, t: number) => {
    const stanza = { tag: "message", attrs: { from: "551@s.whatsapp.net", notify: "Old", t: String(t), ...attrs } };
    correctMessage(stanza, creds);
    return stanza.attrs.notify;
  };
  assert.equal(nameIn({}, seconds), "Old", "the line was never renamed");
  await contacts.changeProfile({ name: "Shop" });
  assert.equal(nameIn({}, seconds), undefined);
  assert.equal(nameIn({ from: "1@g.us", participant: "551@s.whatsapp.net" }, seconds), undefined);
  assert.equal(nameIn({}, seconds + 1), "Old", "the owner renamed it later, on the phone");
  assert.equal(nameIn({ from: "552@s.whatsapp.net" }, seconds), "Old", "another's own name");
});
