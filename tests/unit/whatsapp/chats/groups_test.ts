/** Groups, without a network: what its answers mean. */
import assert from "node:assert/strict";
import type { BinaryNode, WASocket } from "@whiskeysockets/baileys";
import { makeGroups } from "../../../../src/whatsapp/baileys/chats/groups.ts";
import { makeGroupCache } from "../../../../src/whatsapp/baileys/outgoing/group_cache.ts";
import { NetworkRefusal } from "../../../../src/whatsapp/connection.ts";
import { testRuntime } from "../../../support/runtime.ts";

/** The groups of a line whose network gives this answer to every query. */
function answered(...content: BinaryNode[]) {
  const socket = { query: () => Promise.resolve({ tag: "iq", attrs: {}, content }) } as unknown as WASocket;
  return groupsOf(socket);
}

function groupsOf(socket: WASocket) {
  const runtime = testRuntime();
  return makeGroups({
    socket,
    cache: makeGroupCache(() => socket, runtime),
    recipients: { jidsOf: () => assert.fail("nobody is asked about") },
    addressing: { byLid: (jids) => Promise.resolve([...jids]), numberOf: (jid) => Promise.resolve(jid) },
    tokenOf: () => Promise.resolve(null),
    me: () => ({ id: "551@s.whatsapp.net" }),
    runtime,
  });
}

Deno.test("an invite link is the code that the network gives, and none without it", async () => {
  const groups = answered({ tag: "invite", attrs: { code: "AbC" } });
  assert.equal(await groups.invite("1@g.us"), "https://chat.whatsapp.com/AbC");
  for (const nothing of [answered(), answered({ tag: "invite", attrs: {} })]) {
    await assert.rejects(nothing.invite("1@g.us"), NetworkRefusal);
    await assert.rejects(nothing.renewInvite("1@g.us"), NetworkRefusal);
  }
});

Deno.test("a group of a community names it, and says whether it is the one for announcements", async () => {
  const of = async (more: object) => {
    const metadata = { id: "1@g.us", subject: "Team", participants: [], ...more };
    const socket = { groupMetadata: () => Promise.resolve(metadata) } as unknown as WASocket;
    return (await groupsOf(socket).get("1@g.us")).community;
  };
  assert.equal(await of({}), undefined);
  assert.deepEqual(await of({ linkedParent: "2@g.us" }), { id: "2@g.us", isAnnouncement: false });
  assert.deepEqual(await of({ linkedParent: "2@g.us", isCommunityAnnounce: true }), {
    id: "2@g.us",
    isAnnouncement: true,
  });
});

Deno.test("an invite makes the line a member, or asks an admin; an answer that names no group is neither", async () => {
  const joined = answered({ tag: "group", attrs: { jid: "1@g.us" } });
  assert.deepEqual(await joined.join("AbC"), { id: "1@g.us", status: "joined" });
  const asked = answered({ tag: "membership_approval_request", attrs: { jid: "1@g.us" } });
  assert.deepEqual(await asked.join("https://chat.whatsapp.com/AbC"), { id: "1@g.us", status: "asked" });
  await assert.rejects(answered().join("AbC"), NetworkRefusal);
});

Deno.test("whoever is added is named by number too, with the token that they gave; whoever is removed is not", async () => {
  const asked: BinaryNode[] = [];
  const runtime = testRuntime();
  const socket = {
    query(node: BinaryNode) {
      asked.push(node);
      return Promise.resolve({ tag: "iq", attrs: {}, content: [] });
    },
  } as unknown as WASocket;
  const token = new Uint8Array([1]);
  const groups = makeGroups({
    socket,
    cache: makeGroupCache(() => socket, runtime),
    recipients: { jidsOf: () => Promise.resolve(new Map([["552", "552@s.whatsapp.net"]])) },
    addressing: {
      byLid: (jids) => Promise.resolve([...jids]),
      numberOf: (jid) => Promise.resolve(jid === "1@lid" ? "553@s.whatsapp.net" : jid),
    },
    tokenOf: (jid) => Promise.resolve(jid === "1@lid" ? token : null),
    me: () => ({ id: "551@s.whatsapp.net" }),
    runtime,
  });
  for (const action of ["add", "remove"] as const) {
    await groups.changeMembers("1@g.us", action, ["552", "1@lid", "2@lid"]);
  }
  const nodes = asked.map(({ content }) => (content as BinaryNode[])[0]!.content);
  assert.deepEqual(nodes, [
    [
      { tag: "participant", attrs: { jid: "552@s.whatsapp.net" } },
      {
        tag: "participant",
        attrs: { jid: "1@lid", phone_number: "553@s.whatsapp.net" },
        content: [{ tag: "privacy", attrs: {}, content: token }],
      },
      { tag: "participant", attrs: { jid: "2@lid" } },
    ],
    ["552@s.whatsapp.net", "1@lid", "2@lid"].map((jid) => ({ tag: "participant", attrs: { jid } })),
  ]);
});
