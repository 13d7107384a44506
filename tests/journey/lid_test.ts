/** People who hide their number: what a client learns of them, and how it answers them. */
import assert from "node:assert/strict";
import { onStage } from "../support/stage.ts";
import { subscribe } from "../support/subscriber.ts";

const LINE = "4915200000003";
const ANA = "4917000000001";
const BEN = "4917000000002";

onStage("a sender who is known by @lid alone has a number, and an answer to the @lid arrives", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  const { lid } = await stage.control.call("GET", `/phones/${ANA}`);
  const client = await subscribe(stage, { events: ["message.received", "message.sent", "message.status"] });
  const hello = { to: LINE, text: "guess who is writing", hideNumber: true };
  const { id } = await stage.control.call("POST", `/phones/${ANA}/messages`, hello);
  const { data } = await client.event("the message", ({ data }) => data.messageId === id);
  assert.match(data.from, /^\d+@lid$/);
  assert.equal(data.from, lid);
  assert.equal(data.number, ANA);
  assert.equal(data.pushName, "Ana");

  const messageId = await stage.sendText(line, data.from, "an answer to the @lid");
  const arrived = await stage.arrival(ANA, ({ text }) => text === "an answer to the @lid");
  const sent = await client.event(
    "sent",
    ({ event, data }) => event === "message.sent" && data.messageId === messageId,
  );
  assert.equal(sent.data.to, lid, "as it was given");
  await client.event("delivered", ({ data }) => data.status === "delivered" && data.messageId === messageId);
  await stage.control.call("POST", `/phones/${ANA}/read`, { id: arrived.id });
  await client.event("read", ({ data }) => data.status === "read" && data.messageId === messageId);

  // The same person, written to and writing with the number: one number throughout.
  await stage.sendText(line, ANA, "an answer to the number");
  await stage.arrival(ANA, ({ text }) => text === "an answer to the number");
  const wire: { to: string }[] = await stage.control.call("GET", `/wire?line=${LINE}`);
  assert.deepEqual(new Set(wire.map(({ to }) => to)), new Set([lid]), "the network refuses a number here (463)");
  for (const hideNumber of [false, true]) {
    const again = await stage.control.call("POST", `/phones/${ANA}/messages`, {
      to: LINE,
      text: "hi again",
      hideNumber,
    });
    const { data } = await client.event("the next message", ({ data }) => data.messageId === again.id);
    assert.deepEqual([data.from, data.number], [hideNumber ? lid : `${ANA}@s.whatsapp.net`, ANA]);
  }
  await client.end();
});

onStage(
  "a sender who writes by @lid, as most do today, and the owner's answer on the phone are of one chat",
  async (stage) => {
    await stage.addPhone(ANA, "Ana");
    const line = await stage.linkLine(LINE);
    const client = await subscribe(stage, { events: ["message.received", "message.echo"] });
    const [ana, own] = await Promise.all([ANA, LINE].map((number) => stage.control.call("GET", `/phones/${number}`)));
    const write = async (number: string, to: string, text: string) => {
      await stage.control.call("POST", `/phones/${number}/messages`, { to, text });
      const { event, data } = await client.event(text, ({ data }) => data.text === text);
      return [event, data.from, data.number];
    };
    assert.deepEqual(await write(ANA, own.lid, "by @lid"), ["message.received", ana.lid, ANA]);
    assert.deepEqual(await write(LINE, ana.lid, "the owner's answer"), ["message.echo", ana.lid, LINE]);
    await stage.sendText(line, ana.lid, "the line's answer");
    const { from } = await stage.arrival(ANA, ({ text }) => text === "the line's answer");
    assert.equal(from, `${LINE}@s.whatsapp.net`);
    await client.end();
  },
);

onStage("a member of a group who hides the number has one, and so has one after a restart", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  await stage.addPhone(BEN, "Ben");
  const line = await stage.linkLine(LINE);
  const client = await subscribe(stage, { events: ["message.received", "poll.vote"] });
  for (const addressingMode of ["lid", "pn"]) {
    const members = { subject: `By ${addressingMode}`, participants: [BEN, ANA, LINE], addressingMode };
    const { id: group } = await stage.control.call("POST", "/groups", members);
    for (const number of [ANA, BEN]) {
      const message = { to: group, text: `hello from ${number}`, hideNumber: true };
      const { id } = await stage.control.call("POST", `/phones/${number}/messages`, message);
      const { data } = await client.event(`the message of ${number}`, ({ data }) => data.messageId === id);
      assert.equal(data.from, group);
      assert.match(data.participant, /@lid$/);
      assert.equal(data.number, number);
    }
    const poll = { sessionId: line.sessionId, to: group, question: "Lunch?", options: ["pizza", "sushi"] };
    const { messageId } = await stage.api.call("POST", "/messages/send/poll", poll);
    const asked = await stage.arrival(ANA, ({ type, chat }) => chat === group && type.startsWith("pollCreation"));
    await stage.control.call("POST", `/phones/${ANA}/vote`, { id: asked.id, options: ["sushi"] });
    const vote = await client.event(`a vote by ${addressingMode}`, ({ data }) => data.messageId === messageId);
    assert.deepEqual([vote.data.number, vote.data.options], [ANA, ["sushi"]]);
  }
  await stage.gateway.kill();
  await stage.gateway.start();
  await stage.sessionStatus(line, "connected");
  const message = { to: LINE, text: "still me", hideNumber: true };
  const { id } = await stage.control.call("POST", `/phones/${BEN}/messages`, message);
  const { data } = await client.event("the message after the restart", ({ data }) => data.messageId === id);
  assert.equal(data.number, BEN);
  await client.end();
});

onStage(
  "people are addressed as the network wants it of the account, before and after its chats migrate to LIDs",
  async (stage) => {
    await stage.addPhone(ANA, "Ana");
    const line = await stage.linkLine(LINE);
    const { lid } = await stage.control.call("GET", `/phones/${ANA}`);
    for (const [form, address] of [["pn", `${ANA}@s.whatsapp.net`], ["lid", lid]]) {
      await stage.control.call("POST", "/faults", { line: LINE, kind: "demand_addressing", form });
      for (const to of [ANA, lid]) {
        const text = `${form}, to ${to}`;
        await stage.sendText(line, to, text);
        await stage.arrival(ANA, (message) => message.text === text);
        const wire: { to: string }[] = await stage.control.call("GET", `/wire?line=${LINE}`);
        assert.equal(wire.at(-1)!.to, address);
      }
    }
  },
);
