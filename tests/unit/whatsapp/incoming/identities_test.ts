/** What notifications and other stanzas tell of who people are. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { BinaryNode } from "@whiskeysockets/baileys";
import { identitiesIn, makeUsernameWatch } from "../../../../src/whatsapp/baileys/incoming/identities.ts";

const LID = "111@lid";

function mex(op_name: string, data: unknown): BinaryNode {
  const update = { tag: "update", attrs: { op_name }, content: Buffer.from(JSON.stringify({ data })) };
  return { tag: "notification", attrs: { type: "mex" }, content: [update] };
}
const set = (told: unknown) => mex("UsernameSetNotification", { xwa2_notify_username_on_change: told });
const person = { kind: "person", id: null, chat: LID };

Deno.test("notifications tell of usernames and of addresses that change, and of the line's own username", () => {
  const username = { tag: "username", attrs: { action: "modify" } };
  const own = { tag: "notification", attrs: { type: "account_sync" }, content: [username] };
  const changed = mex("LidChangeNotification", { xwa2_notify_lid_change: { old: "111:0@lid", new: "222:0@lid" } });
  const gone = mex("UsernameDeleteNotification", { xwa2_notify_username_delete: { lid: LID, display_name: "Ana" } });
  const profile = { kind: "profile", id: null, chat: "" };
  assert.deepEqual(identitiesIn(changed), [{ ...person, lid: "222@lid" }]);
  assert.deepEqual(identitiesIn(set({ lid: LID, username: "@ana.sea" })), [{ ...person, username: "ana.sea" }]);
  assert.deepEqual(identitiesIn(gone), [{ ...person, username: null }]);
  assert.deepEqual([identitiesIn(own), identitiesIn(mex("AccountSyncUsernameNotification", {}))], [[profile], [
    profile,
  ]]);
});

Deno.test("a notification that is malformed, or about anything else, tells nothing", () => {
  const change = (told: unknown) => mex("LidChangeNotification", told);
  const strange = [
    change(null),
    change({}),
    change({ xwa2_notify_lid_change: { old: 1, new: LID } }),
    change({ xwa2_notify_lid_change: { old: LID, new: "551@s.whatsapp.net" } }),
    set({ lid: LID }),
    set({ lid: LID, username: 1 }),
    set({ lid: LID, username: "no name" }),
    mex("constructor", { xwa2_notify_username_on_change: { lid: LID, username: "ana" } }),
    { tag: "notification", attrs: { type: "mex" }, content: [{ tag: "update", attrs: {}, content: Buffer.from("{") }] },
    { tag: "notification", attrs: { type: "account_sync" }, content: [{ tag: "blocklist", attrs: {} }] },
  ];
  for (const stanza of strange) assert.deepEqual(identitiesIn(stanza), []);
});

Deno.test("each username beside an address is told once, and when it changes", () => {
  const told: unknown[] = [];
  const watch = makeUsernameWatch((identity) =>
    told.push([identity.chat, "username" in identity && identity.username])
  );
  const tell = (tag: string, attrs: Record<string, string>, content: BinaryNode[] = []) =>
    watch({ tag, attrs, content });
  const member = { tag: "participant", attrs: { jid: "5@lid", username: "eve" } };
  const group = { from: "1@g.us", participant: "2:3@lid" };
  tell("message", { from: "1:4@lid", username: "@ana" });
  tell("message", { ...group, participant_username: "ben" });
  for (const participant_username of ["ben", "ben.2"]) tell("receipt", { ...group, participant_username });
  tell("message", { from: "9@lid", recipient: "3@lid", peer_recipient_username: "cleo" });
  tell("message", { from: "9@lid", recipient: "4@lid", recipient_username: "dora" });
  tell("notification", { from: "1@g.us", type: "w:gp2" }, [{ tag: "add", attrs: {}, content: [member] }]);
  tell("iq", { from: "6@lid", username: "fay" });
  tell("receipt", { from: "6@lid", username: "no name" });
  assert.deepEqual(told, [
    ["1@lid", "ana"],
    ["2@lid", "ben"],
    ["2@lid", "ben.2"],
    ["3@lid", "cleo"],
    ["4@lid", "dora"],
    ["5@lid", "eve"],
  ]);
});
