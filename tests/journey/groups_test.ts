/** A line's groups, worked through the API, with phones in them as witnesses. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { approvalNode } from "../../src/sandbox/world/groups.ts";
import { type LinkedLine, onSharedStage, type Stage } from "../support/stage.ts";

const onGroups = onSharedStage("groups");

const NOBODY = "4917099999999";
/** The smallest bytes that begin as a JPEG. */
const JPEG = "/9j/4AAQSkZJRg==";

const numbers = (group: Json) => group.participants.map(({ number }: Json) => number).sort();
const results = (data: Json[]) => data.map(({ number, status, error }) => [number, status, error?.code ?? null]);

async function refusal(stage: Stage, ask: [string, string, Json?]): Promise<[number, string]> {
  const [method, path, json] = ask;
  const body = json === undefined
    ? {}
    : { body: JSON.stringify(json), headers: { "content-type": "application/json" } };
  const answer = await stage.request(method, path, body);
  return [answer.status, (await answer.json()).code];
}

/** Lets a phone write, and waits until the line knows the message: a chat's next one comes when it is kept. */
async function wrote(stage: Stage, line: LinkedLine, { from, ...message }: Json): Promise<string> {
  const { id } = await stage.control.call("POST", `/phones/${from}/messages`, message);
  const next = await stage.control.call("POST", `/phones/${from}/messages`, { ...message, text: "and so on" });
  await stage.event(line, ({ data }) => data.messageId === next.id);
  return id;
}

onGroups("a group is made, looked at, changed, written to and left", async (stage, [LINE, ANA, BEN]) => {
  for (const number of [ANA, BEN]) await stage.addPhone(number);
  const line = await stage.linkLine(LINE);
  const groups = `/sessions/${line.sessionId}/groups`;
  const { data: made } = await stage.api.call("POST", groups, { name: "Team", participants: [ANA, BEN, NOBODY] });
  assert.deepEqual(results(made.results), [
    [ANA, "ok", null],
    [BEN, "ok", null],
    [NOBODY, "failed", "number_not_registered"],
  ]);
  const { id, name, description, size, isAdmin, createdAt, announce, locked, ephemeral } = made;
  assert.deepEqual({ name, description, size, isAdmin, announce, locked, ephemeral }, {
    name: "Team",
    description: "",
    size: 3,
    isAdmin: true,
    announce: false,
    locked: false,
    ephemeral: 0,
  });
  assert.match(id, /@g\.us$/);
  assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000);
  assert.deepEqual(numbers(made), [LINE, ANA, BEN].sort());

  const changes = { name: "Team 🌻", description: "who we are", announce: true, locked: true, ephemeral: 86_400 };
  const { data: changed } = await stage.api.call("PATCH", `${groups}/${id}`, { ...changes, picture: JPEG });
  const witness = await stage.control.call("GET", `/groups/${id}`);
  for (const [field, value] of Object.entries(changes)) {
    assert.equal(changed[field], value, field);
    assert.equal(witness[field === "name" ? "subject" : field], value, `${field}, as the network has it`);
  }
  assert.deepEqual((await stage.api.call("GET", `${groups}/${id}`)).data, changed);
  assert.equal((await stage.api.call("GET", groups)).data[0].name, "Team 🌻");

  const hello = await stage.sendText(line, id, "hello team");
  for (const number of [ANA, BEN]) {
    await stage.arrival(number, ({ text, chat }) => text === "hello team" && chat === id);
  }

  // What is deleted for everyone: somebody else's as admin, and an own one.
  await stage.api.call("PATCH", `${groups}/${id}`, { announce: false });
  const spam = await wrote(stage, line, { from: BEN, to: id, text: "buy now" });
  const { data: deleted } = await stage.api.call("DELETE", `${groups}/${id}/messages/${spam}`);
  assert.deepEqual(deleted, { group: id, messageId: spam });
  await stage.arrival(ANA, (message) => message.id === spam && message.revoked);
  await stage.api.call("DELETE", `${groups}/${id}/messages/${hello}`);
  await stage.arrival(ANA, ({ text, revoked }) => text === "hello team" && revoked);
  const { life } = (await stage.api.call("GET", `/messages/${hello}`)).data;
  assert.equal(life.at(-1).status, "revoked");
  const other = await stage.control.call("POST", "/groups", { subject: "Others", participants: [BEN, LINE] });
  const foreign = await wrote(stage, line, { from: BEN, to: other.id, text: "hi others" });
  const refusals: [path: string, status: number, code: string][] = [
    [`${other.id}/messages/${foreign}`, 409, "not_revocable"],
    [`${id}/messages/${foreign}`, 404, "not_found"],
    [`${id}/messages/3EB0NOTHING`, 404, "not_found"],
    [`${id}/messages/${hello}`, 409, "not_revocable"],
  ];
  for (const [path, status, code] of refusals) {
    assert.deepEqual(await refusal(stage, ["DELETE", `${groups}/${path}`]), [status, code], path);
  }
  await stage.api.call("DELETE", `${groups}/${other.id}`);

  assert.deepEqual((await stage.api.call("DELETE", `${groups}/${id}`)).data, { id });
  assert.deepEqual((await stage.api.call("GET", groups)).data, []);
  assert.ok(
    !(await stage.control.call("GET", `/groups/${id}`)).participants.some(({ number }: Json) => number === LINE),
  );
});

onGroups("a group may have a name that looks like an address", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  const { sessionId } = await stage.linkLine(LINE);
  const name = "Team: Ana @ home";
  const { data } = await stage.api.call("POST", `/sessions/${sessionId}/groups`, { name, participants: [ANA] });
  assert.equal((await stage.control.call("GET", `/groups/${data.id}`)).subject, name);
});

onGroups(
  "participants are added, promoted, demoted and removed, with a result each",
  async (stage, [LINE, ANA, BEN]) => {
    for (const number of [ANA, BEN]) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);
    const groups = `/sessions/${line.sessionId}/groups`;
    const { data: { id } } = await stage.api.call("POST", groups, { name: "Team", participants: [ANA] });
    const { lid } = await stage.control.call("GET", `/phones/${BEN}`);
    const act = async (action: string, ...participants: string[]) =>
      results((await stage.api.call("POST", `${groups}/${id}/participants`, { action, participants })).data);
    assert.deepEqual(await act("add", ANA, BEN, NOBODY), [
      [ANA, "failed", "already_participant"],
      [BEN, "ok", null],
      [NOBODY, "failed", "number_not_registered"],
    ]);
    assert.deepEqual(await act("promote", lid), [[lid, "ok", null]]);
    const admins = async () => {
      const { data } = await stage.api.call("GET", `${groups}/${id}`);
      return data.participants.filter(({ isAdmin }: Json) => isAdmin).map(({ number }: Json) => number).sort();
    };
    assert.deepEqual(await admins(), [LINE, BEN].sort());
    assert.deepEqual(await act("demote", BEN), [[BEN, "ok", null]]);
    assert.deepEqual(await admins(), [LINE]);
    assert.deepEqual(await act("remove", BEN), [[BEN, "ok", null]]);
    assert.deepEqual(await act("remove", BEN), [[BEN, "failed", "not_participant"]]);
    assert.deepEqual(numbers((await stage.api.call("GET", `${groups}/${id}`)).data), [LINE, ANA].sort());
  },
);

onGroups(
  "invitations are given, revoked and followed, and requests to join are answered",
  async (stage, [LINE, ANA, BEN]) => {
    for (const number of [ANA, BEN]) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);
    const groups = `/sessions/${line.sessionId}/groups`;
    const own = (await stage.api.call("POST", groups, { name: "Ours", participants: [] })).data.id;
    const { data: { invite } } = await stage.api.call("GET", `${groups}/${own}/invite`);
    assert.equal(invite, `https://chat.whatsapp.com/${(await stage.control.call("GET", `/groups/${own}`)).invite}`);
    const { data: fresh } = await stage.api.call("DELETE", `${groups}/${own}/invite`);
    assert.notEqual(fresh.invite, invite);
    assert.deepEqual((await stage.api.call("GET", `${groups}/${own}/invite`)).data, fresh);

    const { groups: all, groupChanges } = stage.network.switchboard;
    const group = all.get(own)!;
    assert.equal(groupChanges.set(group, group.creator, { approval: true }, approvalNode(true)), true);
    for (const number of [ANA, BEN]) {
      await stage.control.call("POST", `/phones/${number}/join`, {
        invite: fresh.invite,
      });
    }
    const { data: waiting } = await stage.api.call("GET", `${groups}/${own}/requests`);
    assert.deepEqual(waiting.map(({ number }: Json) => number).sort(), [ANA, BEN]);
    const answer = async (action: string, ...participants: string[]) =>
      results((await stage.api.call("POST", `${groups}/${own}/requests`, { action, participants })).data);
    assert.deepEqual(await answer("approve", ANA, LINE), [[ANA, "ok", null], [LINE, "failed", "not_participant"]]);
    assert.deepEqual(await answer("reject", BEN), [[BEN, "ok", null]]);
    assert.deepEqual(numbers((await stage.api.call("GET", `${groups}/${own}`)).data), [LINE, ANA].sort());
    assert.deepEqual((await stage.api.call("GET", `${groups}/${own}/requests`)).data, []);

    const { id: theirs } = await stage.control.call("POST", "/groups", { subject: "Theirs", participants: [BEN] });
    const { invite: link } = await stage.control.call("GET", `/groups/${theirs}`);
    assert.deepEqual(await refusal(stage, ["GET", `${groups}/${theirs}`]), [403, "network_forbidden"]);
    assert.deepEqual((await stage.api.call("POST", `${groups}/join`, { invite: link })).data, {
      id: theirs,
      status: "joined",
    });
    assert.equal((await stage.api.call("GET", `${groups}/${theirs}`)).data.name, "Theirs");
    assert.deepEqual(await refusal(stage, ["PATCH", `${groups}/${theirs}`, { announce: true }]), [
      403,
      "network_forbidden",
    ]);
    const join = (invite: string) => refusal(stage, ["POST", `${groups}/join`, { invite }]);
    assert.deepEqual(await join(link), [409, "network_conflict"]);
    for (const none of [invite, "https://chat.whatsapp.com/AbCdEfGhIjKlMnOpQrStUv"]) {
      assert.deepEqual(await join(none), [404, "not_found"]);
    }
    assert.deepEqual(await refusal(stage, ["GET", `${groups}/120363000000000000@g.us`]), [404, "not_found"]);
  },
);

onGroups(
  "whoever lets only those add them whom they know is added by the token that they gave",
  async (stage, [LINE, ANA, BEN]) => {
    for (const number of [ANA, BEN]) {
      await stage.addPhone(number);
      stage.network.switchboard.directory.account(number)!.privacy.set("groupadd", "contacts");
    }
    const line = await stage.linkLine(LINE);
    const groups = `/sessions/${line.sessionId}/groups`;
    await wrote(stage, line, { from: ANA, to: LINE, text: "hello" });
    const { data: made } = await stage.api.call("POST", groups, { name: "Team", participants: [ANA, BEN] });
    assert.deepEqual(results(made.results), [[ANA, "ok", null], [BEN, "failed", "not_allowed"]]);
    await wrote(stage, line, { from: BEN, to: LINE, text: "hello" });
    const { lid } = stage.network.switchboard.directory.account(BEN)!;
    const added = { action: "add", participants: [lid] };
    const { data } = await stage.api.call("POST", `${groups}/${made.id}/participants`, added);
    assert.deepEqual(results(data), [[lid, "ok", null]]);
  },
);
