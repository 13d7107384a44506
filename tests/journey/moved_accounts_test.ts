/** People whose number belongs to another account than before, so that the network knows them by another LID. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { type LinkedLine, onStage, type Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000041";
const ANA = "4917000000041";

const lidOf = (stage: Stage) => stage.network.switchboard.directory.account(ANA)!.lid;
const move = (stage: Stage, announced: boolean) =>
  stage.control.call("POST", "/faults", { line: ANA, kind: "refresh_lid", announced });
/** Where the line's messages went, in their order. */
const addressees = (stage: Stage) => stage.network.switchboard.wire.entries(LINE).map(({ to }) => to);

async function write(stage: Stage, line: LinkedLine, text: string, to = ANA): Promise<void> {
  await stage.status(await stage.sendText(line, to, text), "sent");
  await stage.arrival(ANA, (item) => item.text === text);
}

async function hear(stage: Stage, line: LinkedLine, text: string): Promise<Json> {
  const { id } = await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text });
  const { data } = await stage.event(line, ({ event, data }) => event === "message.received" && data.messageId === id);
  return data;
}

onStage("a message is told that its recipient has moved: the next ones go there, in the same chat", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  await write(stage, line, "one");
  await hear(stage, line, "an answer");
  const old = lidOf(stage);
  await move(stage, false);
  // The second is prepared, for the old address, while the first is on its way.
  await Promise.all(["two", "three"].map((text) => write(stage, line, text)));
  const lid = lidOf(stage);
  assert.notEqual(lid, old);
  assert.deepEqual(addressees(stage), [old, old, lid]);

  // It is known after a restart too, and by the old address.
  await stage.gateway.kill();
  await stage.gateway.start();
  await write(stage, line, "four", old);
  await write(stage, line, "five");
  assert.deepEqual(addressees(stage).slice(3), [lid, lid]);

  assert.equal((await hear(stage, line, "from the new account")).from, `${ANA}@s.whatsapp.net`);
  const chats = `/sessions/${line.sessionId}/chats`;
  const { data } = await stage.api.call("GET", chats);
  assert.deepEqual(data.map(({ number }: Json) => number), [ANA]);
  for (const name of [ANA, old, lid]) {
    const { data: messages } = await stage.api.call("GET", `${chats}/${name}/messages`);
    assert.equal(messages.length, 7, name);
  }
});

onStage("a move that the network announces is known before anything is sent to the old address", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  await write(stage, line, "one");
  const old = lidOf(stage);
  await move(stage, true);
  const chat = async () => (await stage.api.call("GET", `/sessions/${line.sessionId}/chats/${ANA}`)).data;
  await until(async () => (await chat()).lid === lidOf(stage), "the new address");
  await write(stage, line, "two");
  assert.deepEqual(addressees(stage), [old, lidOf(stage)]);
  const metrics = await (await fetch(new URL("/metrics", stage.gateway.baseUrl))).text();
  assert.doesNotMatch(metrics, /LidChange/);
});

onStage(
  "somebody whose number is unknown moves: one chat, one opt-out, and what was for the old address arrives",
  async (stage) => {
    await stage.control.call("POST", "/phones", { number: ANA, name: "Ana", hidesNumber: true });
    const line = await stage.linkLine(LINE);
    const says = async (text: string) => {
      const { id } = await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text, hideNumber: true });
      const isIt = ({ event, data }: Json) => event === "message.received" && data.messageId === id;
      return (await stage.event(line, isIt)).data;
    };
    const first = lidOf(stage);
    assert.deepEqual([(await says("one")).number, (await says("two")).from], [null, first]);
    await write(stage, line, "three", first);
    const chats = `/sessions/${line.sessionId}/chats`;
    const only = async () => (await stage.api.call("GET", chats)).data.map(({ chat, lid }: Json) => [chat, lid]);
    for (const _ of ["once", "and again"]) {
      await move(stage, true);
      const lid = lidOf(stage);
      await until(async () => (await only()).join() === [lid, lid].join(), "the chat at the new address");
    }
    const lid = lidOf(stage);
    await write(stage, line, "four", first);
    assert.deepEqual(addressees(stage), [first, lid]);
    assert.equal((await says("five")).from, lid);
    assert.deepEqual(await only(), [[lid, lid]]);
    for (const name of [first, lid]) {
      assert.equal((await stage.api.call("GET", `${chats}/${name}/messages`)).data.length, 5, name);
    }

    await stage.api.call("PUT", `/optouts/${lid}`);
    await move(stage, true);
    await until(async () => (await only())[0][1] === lidOf(stage), "the chat at the newest address");
    const json = { sessionId: line.sessionId, to: lidOf(stage), text: "six" };
    await assert.rejects(stage.api.call("POST", "/messages/send/text", json), /recipient_opted_out/);
  },
);

onStage("somebody with an unknown number goes on after a move with what was begun before", async (stage) => {
  await stage.control.call("POST", "/phones", { number: ANA, name: "Ana", hidesNumber: true });
  const line = await stage.linkLine(LINE);
  const says = (text: string) =>
    stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text, hideNumber: true });
  const { id: said } = await says("hello");
  await stage.event(line, ({ event, data }) => event === "message.received" && data.messageId === said);
  const old = lidOf(stage);
  const send = async (kind: string, json: Json): Promise<string> =>
    (await stage.api.call("POST", `/messages/send/${kind}`, { sessionId: line.sessionId, to: old, ...json })).messageId;
  const asked = await send("choices", {
    text: "Which?",
    options: [{ id: "a", label: "Red" }, { id: "b", label: "Blue" }],
  });
  await stage.status(asked, "sent");
  const sendAt = new Date(Date.now() + 86_400_000).toISOString();
  const due = await send("text", { text: "due", sendAt, cancelOnReply: true });
  await move(stage, true);
  const chat = async () => (await stage.api.call("GET", `/sessions/${line.sessionId}/chats/${old}`)).data;
  await until(async () => (await chat()).lid === lidOf(stage), "the new address");

  await says("blue");
  const chosen = await stage.event(line, ({ event, data }) => event === "choice.made" && data.messageId === asked);
  assert.equal(chosen.data.id, "b");
  assert.equal((await stage.status(due, "failed")).error.code, "cancelled_by_reply");
});
