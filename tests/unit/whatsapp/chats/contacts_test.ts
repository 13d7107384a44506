/** The line's own profile, without a socket. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type AuthenticationCreds, initAuthCreds, type WASocket } from "@whiskeysockets/baileys";
import { NetworkRefusal } from "../../../../src/whatsapp/connection.ts";
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

/** A line whose GraphQL queries are answered with this data, each as what it asked for. */
function asking(answers: Record<string, unknown>) {
  const asked: unknown[] = [];
  const socket = {
    generateMessageTag: () => "tag",
    query({ content: [query] }: { content: { attrs: { query_id: string }; content: Uint8Array }[] }) {
      const id = query!.attrs.query_id;
      asked.push([id, JSON.parse(new TextDecoder().decode(query!.content)).variables]);
      const json = id in answers ? { data: answers[id] } : { errors: [{ message: "unknown query" }] };
      const result = { tag: "result", attrs: {}, content: Buffer.from(JSON.stringify(json)) };
      return Promise.resolve({ tag: "iq", attrs: {}, content: [result] });
    },
    updateProfileStatus: (text: string) => Promise.resolve(void asked.push(["old", text])),
    fetchStatus: (jid: string) => {
      asked.push(["old", jid]);
      return Promise.resolve([{ status: { status: "of old" } }]);
    },
    profilePictureUrl: () => Promise.resolve(null),
  } as unknown as WASocket;
  const contacts = makeContacts({
    socket,
    recipients: { check: () => assert.fail("nobody is asked about") },
    names: makeNames(),
    me: () => ({ id: "551:7@s.whatsapp.net", name: "Old" }),
    withFiles: (work) => work(),
    runtime: testRuntime(),
  });
  return { contacts, asked };
}

const CHANGE = "9152604461510864";
const LIST = "24072923595647473";
const USERNAME = "25347099718279209";
const ME = "551@s.whatsapp.net";

Deno.test("the about text is changed as WhatsApp Web does: by its query, and then by the old one", async () => {
  const { contacts, asked } = asking({ [CHANGE]: { xwa2_update_text_status: { result: "SUCCESS" } } });
  await contacts.changeProfile({ about: "open" });
  const variables = { input: { text: "open", ephemeral_duration_sec: 0 } };
  assert.deepEqual(asked, [[CHANGE, variables], ["old", "open"]]);
});

Deno.test("an about text that the network does not take is refused, and not half changed", async () => {
  for (const answers of [{ [CHANGE]: { xwa2_update_text_status: { result: "FAILURE" } } }, {}]) {
    const { contacts, asked } = asking(answers);
    await assert.rejects(contacts.changeProfile({ about: "open" }), NetworkRefusal);
    assert.equal(asked.length, 1);
  }
});

Deno.test("an about text is read as WhatsApp Web does, and where that gives none, as older clients do", async () => {
  const input = [{ jid: ME }];
  const listed = (text: string | null) => ({ [LIST]: { xwa2_text_status_list: [{ jid: ME, text }] } });
  for (
    const [answers, about, then] of [
      [listed("open"), "open", []],
      [listed(null), "of old", [["old", ME]]],
      [{}, "of old", [["old", ME]]],
    ] as const
  ) {
    const { contacts, asked } = asking(answers);
    assert.equal((await contacts.profile()).about, about);
    assert.deepEqual(asked, [[USERNAME, {}], [LIST, { input }], ...then]);
  }
});
