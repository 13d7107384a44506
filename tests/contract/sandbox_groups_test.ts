/** Groups as Baileys as it comes makes and changes them: what the network answers, and what the others hear. */
import assert from "node:assert/strict";
import { type BinaryNode, child, childrenOf } from "../../src/sandbox/world/stanza.ts";
import { ANA, LINE, onLines, OTHER } from "../support/two_lines.ts";
import { until } from "../support/until.ts";

onLines("a line makes a group, sets it, and its members are a result each", async ({ network, line, other }) => {
  const [ana, own] = [network.phone(ANA)!.jid, network.phone(OTHER)!.jid];
  const heard: string[] = [];
  other.socket.ev.on("group-participants.update", ({ action }) => heard.push(action));
  const { id } = await line.socket.groupCreate("Friends", [ana]);
  assert.match(id, /@g\.us$/);
  const results = await line.socket.groupParticipantsUpdate(id, [own, ana, "4915599999999@s.whatsapp.net"], "add");
  assert.deepEqual(results.map(({ status }) => status).sort(), ["200", "404", "409"]);
  await until(() => heard.includes("add"));
  await line.socket.groupUpdateSubject(id, "Good friends");
  await line.socket.groupUpdateDescription(id, "of old");
  await line.socket.groupSettingUpdate(id, "announcement");
  await line.socket.groupSettingUpdate(id, "locked");
  await line.socket.groupToggleEphemeral(id, 86_400);
  const seen = await other.socket.groupMetadata(id);
  assert.deepEqual([seen.subject, seen.desc, seen.announce, seen.restrict, seen.ephemeralDuration, seen.size], [
    "Good friends",
    "of old",
    true,
    true,
    86_400,
    3,
  ]);
  await assert.rejects(other.socket.groupUpdateSubject(id, "Mine"), /forbidden/);
  await line.socket.groupParticipantsUpdate(id, [own], "promote");
  await other.socket.groupUpdateSubject(id, "Ours");
  await other.socket.groupLeave(id);
  const group = await (await fetch(`${network.controlUrl}/groups/${id}`)).json();
  assert.deepEqual([group.subject, group.size, group.participants.map(({ number }: { number: string }) => number)], [
    "Ours",
    2,
    [LINE, ANA],
  ]);
});

onLines("an invite lets in who has it, or waits for an admin, and a renewed one makes it worthless", async (scene) => {
  const { network, line, other } = scene;
  const { id } = await line.socket.groupCreate("Open", []);
  const code = await line.socket.groupInviteCode(id);
  assert.equal((await other.socket.groupGetInviteInfo(code!)).subject, "Open");
  assert.equal(await other.socket.groupAcceptInvite(code!), id);
  await assert.rejects(other.socket.groupInviteCode(id), /not-authorized/);
  await line.socket.groupJoinApprovalMode(id, "on");
  const join = (invite: string) =>
    fetch(`${network.controlUrl}/phones/${ANA}/join`, { method: "POST", body: JSON.stringify({ invite }) });
  const asked = await join(`https://chat.whatsapp.com/${code}`);
  assert.deepEqual(await asked.json(), { gid: id, status: "requested" });
  const [request] = await line.socket.groupRequestParticipantsList(id);
  assert.equal(request!.phone_number, `${ANA}@s.whatsapp.net`);
  const [admitted] = await line.socket.groupRequestParticipantsUpdate(id, [request!.jid!], "approve");
  assert.equal(admitted!.status, "200");
  assert.equal((await line.socket.groupMetadata(id)).size, 3);
  assert.notEqual(await line.socket.groupRevokeInvite(id), code);
  const gone = await join(code!);
  assert.equal(gone.status, 400);
  await gone.body?.cancel();
  await assert.rejects(other.socket.groupAcceptInvite(code!), /gone/);
  await assert.rejects(other.socket.groupGetInviteInfo(code!), /gone/);
  await assert.rejects(other.socket.groupAcceptInvite("AbCdEfGhIjKlMnOpQrStUv"), /not-acceptable/);
});

onLines("a group is created without those who are not on the network, and says so", async ({ network, line }) => {
  const unknown = "4915599999999@s.whatsapp.net";
  const participants = [network.phone(ANA)!.jid, unknown].map((jid) => ({ tag: "participant", attrs: { jid } }));
  const create = { tag: "create", attrs: { subject: "Friends", key: "A" }, content: participants };
  const answer: BinaryNode = await line.socket.query({
    tag: "iq",
    attrs: { type: "set", xmlns: "w:g2", to: "@g.us" },
    content: [create],
  });
  const group = child(answer, "group");
  const errors = childrenOf(group, "participant").map(({ attrs }) => attrs.error && [attrs.jid, attrs.error]);
  assert.deepEqual([group!.attrs.size, errors], ["2", [undefined, undefined, [unknown, "404"]]]);
});

onLines("when the last admin leaves, a participant is promoted, and hears of it", async ({ network, line, other }) => {
  const heard: string[] = [];
  other.socket.ev.on("group-participants.update", ({ action }) => heard.push(action));
  const [ana, own] = [network.phone(ANA)!.jid, network.phone(OTHER)!.jid];
  const { id } = await line.socket.groupCreate("Friends", [own, ana]);
  await line.socket.groupLeave(id);
  await until(() => heard.includes("promote"));
  assert.deepEqual(heard, ["remove", "promote"]);
  await other.socket.groupSettingUpdate(id, "locked");
  const { participants } = await other.socket.groupMetadata(id);
  assert.deepEqual(participants.map(({ admin }) => admin), ["admin", null]);
});

onLines(
  "a group's picture is its members' to change, while the group is not locked",
  async ({ network, line, other }) => {
    const { id } = await line.socket.groupCreate("Friends", [network.phone(ANA)!.jid]);
    const attrs = { to: "s.whatsapp.net", type: "set", xmlns: "w:profile:picture", target: id };
    const setBy = ({ socket }: typeof line, content = Uint8Array.of(0xff, 0xd8, 0xff)) =>
      socket.query({ tag: "iq", attrs, content: [{ tag: "picture", attrs: { type: "image" }, content }] });
    await setBy(line);
    await assert.rejects(setBy(line, Uint8Array.of(0x89, 0x50, 0x4e)), /not-acceptable/);
    await assert.rejects(setBy(other), /forbidden/);
    await line.socket.groupParticipantsUpdate(id, [network.phone(OTHER)!.jid], "add");
    await setBy(other);
    await line.socket.groupSettingUpdate(id, "locked");
    await assert.rejects(setBy(other), /forbidden/);
    await setBy(line);
  },
);
