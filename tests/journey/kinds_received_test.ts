/** What companies and their customers send: it arrives whole, and can be answered, reacted to and read. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { describeEvent } from "../../src/cli/describe_event.ts";
import { onStage } from "../support/stage.ts";

const LINE = "4915200000031";
const ANA = "4917000000031";

const KINDS: [kind: string, message: Json, text: string | null, details: Json][] = [
  [
    "templateMessage",
    {
      templateMessage: {
        hydratedTemplate: {
          hydratedContentText: "Your code is 123",
          hydratedButtons: [{ quickReplyButton: { id: "ok", displayText: "OK" } }],
        },
      },
    },
    "Your code is 123",
    { buttons: [{ id: "ok", text: "OK" }] },
  ],
  [
    "interactiveMessage",
    {
      viewOnceMessage: {
        message: {
          interactiveMessage: {
            body: { text: "Pay?" },
            nativeFlowMessage: {
              buttons: [{ name: "cta_url", buttonParamsJson: '{"display_text":"Pay","url":"https://pay.example/7"}' }],
            },
          },
        },
      },
    },
    "Pay?",
    { buttons: [{ text: "Pay", url: "https://pay.example/7" }] },
  ],
  [
    "buttonsMessage",
    {
      buttonsMessage: { contentText: "Pick", buttons: [{ buttonId: "a", buttonText: { displayText: "A" } }] },
    },
    "Pick",
    { buttons: [{ id: "a", text: "A" }] },
  ],
  [
    "listMessage",
    {
      listMessage: {
        title: "Menu",
        description: "Choose",
        sections: [{ title: "Tea", rows: [{ rowId: "t", title: "Green" }] }],
      },
    },
    "Choose",
    { header: "Menu", buttons: [{ id: "t", text: "Green", section: "Tea" }] },
  ],
  ["orderMessage", { orderMessage: { orderId: "1", token: "T", itemCount: 2, message: "please" } }, "please", {
    order: { id: "1", token: "T", itemCount: 2 },
  }],
  [
    "productMessage",
    { productMessage: { body: "Is it there?", product: { productId: "P", title: "Kettle" } } },
    "Is it there?",
    {
      product: { id: "P", title: "Kettle" },
    },
  ],
  [
    "interactiveResponseMessage",
    {
      interactiveResponseMessage: {
        body: { text: "Yes" },
        nativeFlowResponseMessage: { name: "quick_reply", paramsJson: '{"id":"yes"}' },
      },
    },
    "Yes",
    { selectedId: "yes", flow: "quick_reply" },
  ],
  [
    "templateButtonReplyMessage",
    { templateButtonReplyMessage: { selectedId: "ok", selectedDisplayText: "OK" } },
    "OK",
    {
      selectedId: "ok",
    },
  ],
  ["eventMessage", { eventMessage: { name: "Fair", description: "Hall 3" } }, "Fair", {
    event: { name: "Fair", description: "Hall 3" },
  }],
  ["groupInviteMessage", { groupInviteMessage: { groupJid: "1@g.us", inviteCode: "x", groupName: "Team" } }, "Team", {
    invite: { groupId: "1@g.us", code: "x", name: "Team" },
  }],
  [
    "requestPaymentMessage",
    {
      requestPaymentMessage: { noteMessage: { conversation: "lunch" }, amount1000: 9_000, currencyCodeIso4217: "BRL" },
    },
    "lunch",
    { payment: { amount: 9, currency: "BRL" } },
  ],
];

onStage("what companies and their customers send is read whole, and can be answered", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  const chat = `/sessions/${line.sessionId}/chats/${ANA}`;
  for (const [kind, message, text, details] of KINDS) {
    const { id } = await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, message });
    const event = await stage.event(line, ({ data }) => data.messageId === id);
    assert.deepEqual([event.data.type, event.data.text], ["unknown", text], kind);
    assert.deepEqual(event.data.details, { kind, ...details }, kind);
    assert.ok(describeEvent({ ...event, sessionName: "line" }).includes(text!), kind);

    const { sessionId } = line;
    await stage.api.call("POST", "/messages/send/text", { sessionId, to: ANA, text: `re ${kind}`, replyTo: id });
    const answer = await stage.arrival(ANA, (item) => item.text === `re ${kind}`);
    assert.equal(answer.quoted.id, id, kind);
    await stage.api.call("POST", "/messages/send/reaction", { messageId: id, emoji: "👍" });
    await stage.arrival(ANA, ({ reaction }) => reaction?.id === id);
    await stage.api.call("POST", `${chat}/read`, { messageId: id });
    const refusal = { sessionId, to: ANA, messageId: id };
    await assert.rejects(stage.api.call("POST", "/messages/send/forward", refusal), /400.*forwarded/, kind);
  }
  const { data: shown } = await stage.api.call("GET", `${chat}/messages?limit=100`);
  for (const [kind, , text] of KINDS) {
    assert.ok(shown.some((item: Json) => item.details?.kind === kind && item.text === text), `${kind} in the chat`);
  }
});

onStage(
  "an edit that is sealed is an edit, of a text, of a caption, and by the owner too; what is withheld is told at once",
  async (stage) => {
    await stage.addPhone(ANA, "Ana");
    const line = await stage.linkLine(LINE);
    const edits = async (number: string, message: Json, plain: boolean) => {
      const { id } = await stage.control.call("POST", `/phones/${number}/messages`, message);
      await stage.event(line, ({ data }) => data.messageId === id);
      const text = `edited ${crypto.randomUUID()}`;
      await stage.control.call("POST", `/phones/${number}/edit`, { id, text, plain });
      const { event, data } = await stage.event(line, ({ data }) => data.text === text);
      assert.deepEqual([event, data.messageId, data.number], ["message.edited", id, number]);
      return { id, text };
    };
    for (const plain of [false, true]) {
      await edits(ANA, { to: LINE, text: "helo", hideNumber: plain }, plain);
      await edits(LINE, { to: ANA, text: "my own" }, plain);
    }
    const { id, text } = await edits(ANA, { to: LINE, text: "to be quoted" }, false);
    await stage.api.call("POST", "/messages/send/text", {
      sessionId: line.sessionId,
      to: ANA,
      text: "re",
      replyTo: id,
    });
    assert.equal(
      (await stage.arrival(ANA, (item) => item.text === "re")).quoted.text,
      text,
      "it is quoted as it reads now",
    );

    for (const [type, withheld] of [["view_once", "view_once"], ["hosted_unavailable_fanout", "hosted"]] as const) {
      const stanza = { tag: "message", content: [{ tag: "unavailable", attrs: { type } }] };
      const { id } = await stage.control.call("POST", `/phones/${ANA}/stanzas`, { to: LINE, stanza });
      const { data } = await stage.event(line, ({ data }) => data.messageId === id);
      assert.deepEqual(data.details, { withheld });
      assert.equal(data.viewOnce, withheld === "view_once" ? true : undefined);
    }
  },
);
