/** Messages of every kind: a phone shows what was asked for, and the history names the kind. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { accepted, post } from "../support/api_calls.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

const LINE = "4915560000001";
const CUSTOMER = "4917560000001";

/** Sends a kind to the customer; resolves to what the phone shows of it, once the history says `sent` and its kind. */
async function shown(stage: Stage, kind: string, json: Json): Promise<Json> {
  const { messageId } = await accepted(post(stage, `/messages/send/${kind}`, { json: { to: CUSTOMER, ...json } }));
  await stage.status(messageId, "sent");
  const { data: [item] } = await stage.api.call("GET", "/messages/history?limit=1");
  assert.deepEqual([item.messageId, item.type, item.error], [messageId, kind, null]);
  const inbox = await stage.inbox(CUSTOMER);
  return inbox.at(-1)!;
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
