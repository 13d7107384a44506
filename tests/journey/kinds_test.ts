/** Messages of every kind: a phone shows what was asked for, and the history names the kind. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { Json } from "../../src/cli/client.ts";
import { accepted, post, refused } from "../support/api_calls.ts";
import { sampleFile } from "../support/sample_files.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

const LINE = "4915560000001";
const OTHER_LINE = "4915560000002";
const CUSTOMER = "4917560000001";

/** Sends a kind to the customer; resolves to what the phone shows of it, once the history says `sent` and its kind. */
async function shown(stage: Stage, kind: string, json: Json, type = kind): Promise<Json> {
  const { messageId } = await accepted(post(stage, `/messages/send/${kind}`, { json: { to: CUSTOMER, ...json } }));
  await stage.status(messageId, "sent");
  const { data: [item] } = await stage.api.call("GET", "/messages/history?limit=1");
  assert.deepEqual([item.messageId, item.type, item.error], [messageId, type, null]);
  const { data: events } = await stage.api.call("GET", "/events?limit=1000");
  const { data: { networkId } } = events.findLast(({ event, data }: Json) =>
    event === "message.sent" && data.messageId === messageId
  );
  return await stage.arrival(CUSTOMER, ({ id }) => id === networkId);
}

Deno.test("locations, cards and polls arrive as they were asked for", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    await stage.linkLine(LINE);

    await t.step("a location", async () => {
      const place = { latitude: 41.3851, longitude: -2.1734, name: "Shop", address: "Plaça 1" };
      const item = await shown(stage, "location", place);
      assert.deepEqual([item.type, item.location], ["locationMessage", place]);
    });

    await t.step("one card, and several", async () => {
      const anna = { name: "Anna; Serra", phone: "34600111223", organization: "Acme, S.A." };
      const { contacts: [card], type } = await shown(stage, "contact", { contacts: [anna] });
      assert.deepEqual([type, card.name], ["contactMessage", anna.name]);
      assert.deepEqual(card.vcard.split("\n").slice(2, 6), [
        "FN:Anna\\; Serra",
        "N:Anna\\; Serra;;;;",
        "ORG:Acme\\, S.A.",
        "TEL;type=CELL;type=VOICE;waid=34600111223:+34600111223",
      ]);
      const several = await shown(stage, "contact", { contacts: [anna, { name: "Bob", phone: "34600111224" }] });
      assert.deepEqual(several.contacts.map(({ name }: Json) => name), ["Anna; Serra", "Bob"]);
    });

    await t.step("polls of one choice and of several", async () => {
      const poll = { question: "When?", options: ["Today 👋", "Tomorrow"] };
      assert.deepEqual((await shown(stage, "poll", poll)).poll, { ...poll, multiple: false });
      assert.deepEqual((await shown(stage, "poll", { ...poll, multiple: true })).poll, { ...poll, multiple: true });
    });
  }));

Deno.test("reactions, replies and forwards know messages of either side, also after a restart", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    const line = await stage.linkLine(LINE);
    const text = "which size do you need? https://[::1]/";
    const asked = await stage.sendText(line, CUSTOMER, text);
    const seen = await stage.arrival(CUSTOMER, (item) => item.text === text);
    const { id: answer } = await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: "M 👕" });
    await stage.event(line, ({ data }) => data.messageId === answer);

    const check = async (when: string) => {
      await t.step(`${when}, a reaction to what was sent, and it is taken back`, async () => {
        const { reaction, type } = await shown(stage, "reaction", { to: undefined, messageId: asked, emoji: "👍🏽" });
        assert.deepEqual([type, reaction], ["reaction", { id: seen.id, emoji: "👍🏽" }]);
        const taken = await shown(stage, "reaction", { to: undefined, messageId: asked, emoji: "" });
        assert.deepEqual(taken.reaction, { id: seen.id, emoji: "" });
      });
      await t.step(`${when}, a reaction to what was received`, async () => {
        const { reaction } = await shown(stage, "reaction", { to: undefined, messageId: answer, emoji: "❤️" });
        assert.deepEqual(reaction, { id: answer, emoji: "❤️" });
      });
      await t.step(`${when}, a reply to what was received, and one to what was sent`, async () => {
        const reply = await shown(stage, "text", { text: "it is on its way", replyTo: answer });
        assert.deepEqual([reply.text, reply.quoted], ["it is on its way", { id: answer, text: "M 👕" }]);
        const own = await shown(stage, "location", { latitude: 1, longitude: 2, replyTo: asked });
        assert.deepEqual(own.quoted, { id: seen.id, text });
      });
      await t.step(`${when}, a forward of either`, async () => {
        const forward = await shown(stage, "forward", { messageId: answer }, "text");
        assert.deepEqual([forward.text, forward.forwarded, forward.quoted], ["M 👕", true, null]);
        const own = await shown(stage, "forward", { messageId: asked }, "text");
        assert.deepEqual([own.text, own.forwarded], [text, true]);
      });
    };
    await check("at once");
    await t.step("a reply belongs to its chat and its session", async () => {
      const { id: group } = await stage.control.call("POST", "/groups", {
        subject: "All",
        participants: [LINE, CUSTOMER],
      });
      const said = { to: group, text: "in the group" };
      const { id: inGroup } = await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, said);
      await stage.event(line, ({ data }) => data.messageId === inGroup);
      const strange = [{ to: "34600111222", replyTo: answer }, { to: CUSTOMER, replyTo: inGroup }];
      for (const body of strange) {
        const { body: { errors } } = await refused(
          post(stage, "/messages/send/text", { json: { ...body, text: "hi" } }),
          400,
          "validation_failed",
        );
        assert.equal(errors[0].path, "replyTo");
      }
    });
    await t.step("a chat is the same by number, by JID and by @lid", async () => {
      const { lid } = await stage.control.call("GET", `/phones/${CUSTOMER}`);
      for (const to of [`${CUSTOMER}@s.whatsapp.net`, lid]) {
        for (const [replyTo, id] of [[asked, seen.id], [answer, answer]]) {
          const reply = await shown(stage, "text", { to, text: `${to} ${replyTo}`, replyTo });
          assert.equal(reply.quoted.id, id, to);
        }
      }
      const strange = post(stage, "/messages/send/text", { json: { to: "123456789@lid", text: "hi", replyTo: asked } });
      await refused(strange, 400, "validation_failed");
    });
    await t.step("another line of the account sends on what the first has sent and received", async () => {
      const { sessionId } = await stage.linkLine(OTHER_LINE);
      const png = sampleFile("png");
      const document = { to: CUSTOMER, sessionId: line.sessionId, file: png.toString("base64"), filename: "a.png" };
      const { messageId } = await accepted(post(stage, "/messages/send/document", { json: document }));
      await stage.status(messageId, "sent");
      const picture = await shown(stage, "forward", { sessionId, messageId }, "image");
      assert.deepEqual([picture.from, picture.forwarded], [`${OTHER_LINE}@s.whatsapp.net`, true]);
      assert.equal(picture.sha256, createHash("sha256").update(png).digest("hex"));
      const text = await shown(stage, "forward", { sessionId, messageId: answer }, "text");
      assert.deepEqual([text.from, text.text], [`${OTHER_LINE}@s.whatsapp.net`, "M 👕"]);
      await refused(
        post(stage, "/messages/send/text", { json: { to: CUSTOMER, text: "hi", sessionId, replyTo: asked } }),
        400,
        "validation_failed",
      );
    });
    await stage.gateway.kill();
    await stage.gateway.start();
    await stage.sessionStatus(line, "connected");
    await check("after kill -9");
  }));
