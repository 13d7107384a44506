/** People with usernames: shown where they write, looked up, and written to. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { type LinkedLine, onStage, type Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

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

onStage("usernames are told by the way and by notifications too, also the line's own", async (stage) => {
  const line = await setUp(stage);
  const session = `/sessions/${line.sessionId}`;
  const get = async (path: string) => (await stage.api.call("GET", `${session}${path}`)).data;
  const shown = (path: string, username: string | null) =>
    until(async () => (await get(path)).username === username, `${path}: ${username}`);
  const rename = (number: string, username: string | null) =>
    stage.control.call("POST", `/phones/${number}/username`, { username });
  for (const number of [ANA, BEN, CLEO]) {
    await stage.status(await stage.sendText(line, number, "hello"), "sent");
    await shown(`/chats/${number}`, null);
  }

  // By what the owner's phone writes, and by the receipt of a member of a group.
  await stage.control.call("POST", `/phones/${LINE}/messages`, { to: ANA, text: "from the phone" });
  await shown(`/chats/${ANA}`, "ana.sea");
  const { data: group } = await stage.api.call("POST", `${session}/groups`, { name: "Boats", participants: [BEN] });
  await stage.sendText(line, group.id, "all aboard");
  await shown(`/chats/${BEN}`, "Ben_1");

  for (const username of ["cleo.sails", "Cleo_2", null]) {
    await rename(CLEO, username);
    await shown(`/chats/${CLEO}`, username);
  }
  assert.equal((await get("/profile")).username, null);
  await rename(LINE, "bakery.madrid");
  await shown("/profile", "bakery.madrid");
  const metrics = await (await fetch(new URL("/metrics", stage.gateway.baseUrl))).text();
  assert.doesNotMatch(metrics, /Username/);
});

onStage(
  "a bulk's rows may name usernames; each that nobody has, or that needs a key, is refused by its row",
  async (stage) => {
    const line = await setUp(stage);
    const to = (...recipients: string[]) => ({
      sessionId: line.sessionId,
      messages: recipients.map((to, i) => ({ to, text: `text ${i}` })),
    });
    const { messages } = await stage.api.call("POST", "/messages/send/bulk", to("@ana.sea", CLEO, "@ANA.sea"));
    assert.deepEqual(messages.map(({ to }: Json) => to), [lidOf(stage, ANA), CLEO, lidOf(stage, ANA)]);
    for (const [number, text] of [[ANA, "text 0"], [CLEO, "text 1"], [ANA, "text 2"]] as const) {
      await stage.arrival(number, (item) => item.text === text);
    }
    const refused = async (json: Json) => {
      const headers = { "content-type": "application/json" };
      const answer = await stage.request("POST", "/messages/send/bulk", { body: JSON.stringify(json), headers });
      const { code, errors } = await answer.json();
      return [answer.status, code, ...errors.map(({ path }: Json) => path)];
    };
    assert.deepEqual(await refused(to("@nobody", "@ana.sea", "@Nobody", "@no.one")), [
      400,
      "validation_failed",
      "messages.0.to",
      "messages.2.to",
      "messages.3.to",
    ]);
    assert.deepEqual(await refused(to(CLEO, "@ben_1")), [409, "username_key_required", "messages.1.to"]);
    const many = Array.from({ length: 251 }, (_, i) => `@person.${i}`);
    assert.deepEqual(await refused(to(...many)), [400, "validation_failed", "messages.250.to"]);
  },
);
