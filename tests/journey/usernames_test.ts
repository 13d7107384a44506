/** People with usernames: shown where they write, looked up, and written to. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { type LinkedLine, onStage, type Stage } from "../support/stage.ts";

const LINE = "4915100000061";
const ANA = "4917000000061";
const BEN = "4917000000062";
const CLEO = "4917000000063";

async function setUp(stage: Stage): Promise<LinkedLine> {
  await stage.control.call("POST", "/phones", { number: ANA, name: "Ana", username: "ana.sea" });
  await stage.control.call("POST", "/phones", { number: BEN, name: "Ben", username: "Ben_1", usernamePin: "1234" });
  await stage.addPhone(CLEO, "Cleo");
  return await stage.linkLine(LINE);
}

const lidOf = (stage: Stage, number: string) => stage.network.switchboard.directory.account(number)!.lid;

/** The data of the event of a message to the line, or to a group of it. */
async function heard(stage: Stage, line: LinkedLine, from: string, to: string, more: Json = {}): Promise<Json> {
  const { id } = await stage.control.call("POST", `/phones/${from}/messages`, { to, text: "hello", ...more });
  const { data } = await stage.event(line, ({ event, data }) => event === "message.received" && data.messageId === id);
  return data;
}

async function refusal(stage: Stage, path: string, json: Json): Promise<[number, string, string | undefined]> {
  const headers = { "content-type": "application/json" };
  const answer = await stage.request("POST", path, { body: JSON.stringify(json), headers });
  const { code, errors } = await answer.json();
  return [answer.status, code, errors?.[0]?.path];
}

onStage("a username stands beside the number: in events, chats, contacts and groups", async (stage) => {
  const line = await setUp(stage);
  assert.equal((await heard(stage, line, ANA, LINE)).username, "ana.sea");
  assert.equal((await heard(stage, line, BEN, LINE, { hideNumber: true })).username, "Ben_1");
  assert.equal("username" in await heard(stage, line, CLEO, LINE), false);

  const session = `/sessions/${line.sessionId}`;
  const { data: chats } = await stage.api.call("GET", `${session}/chats`);
  assert.deepEqual(chats.map(({ username }: Json) => username), [null, "Ben_1", "ana.sea"]);
  const { data: people } = await stage.api.call("GET", `${session}/contacts`);
  assert.deepEqual(people.map(({ username }: Json) => username).sort(), ["Ben_1", "ana.sea", null]);

  const asked = { name: "Boats", participants: [ANA, CLEO] };
  const { data: group } = await stage.api.call("POST", `${session}/groups`, asked);
  const usernames = group.participants.map(({ username }: Json) => username ?? null);
  assert.deepEqual(usernames.toSorted(), ["ana.sea", null, null]);
  assert.equal((await heard(stage, line, ANA, group.id)).username, "ana.sea");
  await stage.api.call("POST", `${session}/groups/${group.id}/participants`, { action: "add", participants: [BEN] });
  const added = await stage.event(line, ({ event, data }) => event === "group.participants" && data.action === "add");
  assert.deepEqual(added.data.participants.map(({ username }: Json) => username), ["Ben_1"]);
});

onStage("somebody is found and written to by their username; by one with a key to those who know it", async (stage) => {
  const line = await setUp(stage);
  const path = `/sessions/${line.sessionId}/check-number`;
  const check = async (json: Json) => (await stage.api.call("POST", path, json)).data;
  const [ana, ben] = [ANA, BEN].map((number) => lidOf(stage, number));
  assert.deepEqual(await check({ username: "ana.sea" }), { exists: true, jid: ana });
  assert.deepEqual(await check({ username: "@ANA.sea" }), { exists: true, jid: ana });
  assert.deepEqual(await check({ username: "nobody" }), { exists: false, jid: null });
  assert.deepEqual(await check({ username: "ben_1", pin: "1234" }), { exists: true, jid: ben });
  assert.deepEqual(await check({ number: ANA }), { exists: true, jid: `${ANA}@s.whatsapp.net` });
  for (const pin of [undefined, "9999"]) {
    assert.deepEqual((await refusal(stage, path, { username: "ben_1", pin })).slice(0, 2), [
      409,
      "username_key_required",
    ]);
  }
  for (const [json, at] of [[{}, "number"], [{ number: ANA, pin: "1234" }, "pin"], [{ username: "a" }, "username"]]) {
    assert.deepEqual(await refusal(stage, path, json as Json), [400, "validation_failed", at]);
  }

  const messageId = await stage.sendText(line, "@ana.sea", "by your name");
  await stage.status(messageId, "sent");
  await stage.arrival(ANA, ({ text }) => text === "by your name");
  assert.equal((await stage.api.call("GET", `/messages/${messageId}`)).data.to, ana);
  const send = (to: string) => refusal(stage, "/messages/send/text", { sessionId: line.sessionId, to, text: "hello" });
  assert.deepEqual(await send("@nobody"), [400, "validation_failed", "to"]);
  assert.deepEqual((await send("@ben_1")).slice(0, 2), [409, "username_key_required"]);
});
