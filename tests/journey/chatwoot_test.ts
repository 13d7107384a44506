/** `paloma chatwoot`: the bridge as a process between a real gateway and a strict double of Chatwoot. */
import assert from "node:assert/strict";
import { bothWays } from "../../scripts/checks/chatwoot/both_ways.ts";
import { openBridge } from "../support/chatwoot_bridge.ts";
import { sampleFile } from "../support/sample_files.ts";
import { onStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915550100001";
const ANA = "447700900123";
const SECOND = "4915550100002";
const BEN = "447700900124";

onStage(
  "messages, files, replies, receipts, deletions, groups and notes between WhatsApp and Chatwoot",
  async (stage) => {
    const line = await stage.linkLine(LINE);
    await stage.addPhone(ANA, "Ana");
    await stage.addPhone(BEN, "Ben");
    await using bridge = await openBridge(stage, line);
    const { chatwoot } = bridge;
    const write = (from: string, message: object) => stage.control.call("POST", `/phones/${from}/messages`, message);
    const shown = (fits: (message: typeof chatwoot.messages[number]) => boolean) =>
      until(() => chatwoot.messages.find(fits), `a message in Chatwoot that fits ${fits}`);

    // In: a contact with name, number and picture, one conversation.
    const photo = stage.network.media.keepPicture(new Uint8Array([255, 216, 255]));
    stage.network.switchboard.directory.account(ANA)!.picture = photo;
    await write(ANA, { to: LINE, text: "Is *my order* ready?" });
    const asked = await shown(({ content }) => content === "Is **my order** ready?");
    assert.equal(asked.message_type, 0);
    const [contact] = chatwoot.contacts;
    assert.deepEqual([contact.name, contact.phone_number, contact.identifier, contact.avatar_url], [
      "Ana",
      `+${ANA}`,
      `${ANA}@s.whatsapp.net`,
      photo,
    ]);

    // Out: with a quote and marks; ticks come back. A note stays.
    const conversation = asked.conversation_id;
    await chatwoot.agentSays(conversation, "ask the kitchen", { isPrivate: true });
    const answer = await chatwoot.agentSays(conversation, "Yes, **today**", { inReplyTo: asked.id });
    const arrived = await stage.arrival(ANA, ({ text }) => text === "Yes, *today*");
    assert.equal(arrived.quoted.text, "Is *my order* ready?");
    await until(() => answer.status === "delivered", "the first tick");
    await stage.control.call("POST", `/phones/${ANA}/read`, { id: arrived.id });
    await until(() => answer.status === "read", "the second tick");

    // Replies, reactions and edits of the customer.
    await stage.control.call("POST", `/phones/${ANA}/react`, { id: arrived.id, emoji: "👍" });
    const reaction = await shown(({ content }) => content === "👍");
    assert.equal(reaction.content_attributes.in_reply_to, answer.id);
    const { id: original } = await write(ANA, { to: LINE, text: "at eigth" });
    const wrong = await shown(({ content }) => content === "at eigth");
    await stage.control.call("POST", `/phones/${ANA}/edit`, { id: original, text: "at eight" });
    const edited = await shown(({ content }) => content === "✏️ at eight");
    assert.equal(edited.content_attributes.in_reply_to, wrong.id);
    await stage.control.call("POST", `/phones/${ANA}/revoke`, { id: original });
    await until(() => wrong.content_attributes.deleted, "the deletion in Chatwoot");

    // Files both ways, whole.
    const picture = sampleFile("png");
    const file = picture.toString("base64");
    await write(ANA, {
      to: LINE,
      file,
      filename: "door.png",
      mimetype: "image/png",
      kind: "image",
      caption: "the door",
    });
    const withFile = await shown(({ content }) => content === "the door");
    assert.deepEqual(chatwoot.files.get(withFile.attachments[0]!.id)!.bytes, new Uint8Array(picture));
    const invoice = new File([new Uint8Array(sampleFile("pdf"))], "Rechnung März.pdf", { type: "application/pdf" });
    await chatwoot.agentSays(conversation, "the invoice", { file: invoice });
    const document = await stage.arrival(ANA, ({ filename }) => filename === "Rechnung März.pdf");
    assert.deepEqual([document.caption, document.size], ["the invoice", invoice.size]);

    // An agent deletes; an agent writes first.
    chatwoot.agentDeletes(answer.id);
    await stage.arrival(ANA, ({ id, revoked }) => id === arrived.id && revoked);
    const opened = chatwoot.agentOpens(bridge.inbox, `+${BEN}`);
    await chatwoot.agentSays(opened.id, "Hello Ben");
    await stage.arrival(BEN, ({ text }) => text === "Hello Ben");
    await write(BEN, { to: LINE, text: "Hello shop" });
    assert.equal((await shown(({ content }) => content === "Hello shop")).conversation_id, opened.id);

    // A group is one conversation, with names; its own line's phone is the outgoing side.
    const group = await stage.control.call("POST", "/groups", { subject: "Team", participants: [LINE, ANA, BEN] });
    await write(BEN, { to: group.id, text: "who comes?" });
    const inGroup = await shown(({ content }) => content?.endsWith("who comes?") ?? false);
    assert.equal(inGroup.content, `**Ben** (+${BEN}):\nwho comes?`);
    await chatwoot.agentSays(inGroup.conversation_id, "all of us");
    await stage.arrival(ANA, ({ text, chat }) => text === "all of us" && chat === group.id);
    await write(LINE, { to: ANA, text: "from my own phone" });
    const echo = await shown(({ content }) => content === "from my own phone");
    assert.deepEqual([echo.message_type, echo.conversation_id], [1, conversation]);

    // What cannot be sent says so; a webhook that is not signed changes nothing.
    const nobody = chatwoot.agentOpens(bridge.inbox, "+447700900999");
    const lost = await chatwoot.agentSays(nobody.id, "anybody?");
    await until(() => lost.status === "failed", "the failure in Chatwoot");
    assert.match(lost.external_error!, /number_not_registered|not on WhatsApp/i);
    const forged = await fetch(bridge.webhookUrl(), {
      method: "POST",
      body: JSON.stringify({ event: "message_created" }),
    });
    await forged.body?.cancel();
    assert.equal(forged.status, 401);

    // Written while the bridge is away, and nothing after it: found by looking, and no longer marked as failed.
    await bridge.restart(async () => {
      const missed = await chatwoot.agentSays(conversation, "while you were away");
      await until(() => missed.status === "failed", "Chatwoot's mark");
    });
    await stage.arrival(ANA, ({ text }) => text === "while you were away");
    await until(() => chatwoot.messages.at(-1)!.status !== "failed", "the mark to go");

    for (const number of [ANA, BEN]) {
      const texts = (await stage.inbox(number)).map(({ text }) => text);
      assert.ok(!texts.includes("ask the kitchen"));
      for (const text of ["Yes, *today*", "all of us", "from my own phone"]) {
        assert.ok(texts.filter((one) => one === text).length <= 1, text);
      }
    }
    assert.deepEqual(chatwoot.violations, []);
    assert.equal((await Deno.stat(bridge.file)).mode! & 0o777, 0o600);
  },
);

onStage(
  "two lines are two inboxes with one contact, agents are named, and a refused file is said to be",
  async (stage) => {
    const line = await stage.linkLine(LINE);
    await stage.addPhone(ANA, "Ana");
    await using bridge = await openBridge(stage, line, ["--agent-names"]);
    const { chatwoot } = bridge;
    const second = await bridge.connect(await stage.linkLine(SECOND));
    const write = (message: object) => stage.control.call("POST", `/phones/${ANA}/messages`, message);
    const shown = (content: string) =>
      until(() => chatwoot.messages.find((message) => message.content === content), `${content} in Chatwoot`);

    await write({ to: LINE, text: "to the first" });
    const first = await shown("to the first");
    await write({ to: SECOND, text: "to the second" });
    const other = await shown("to the second");
    assert.equal(chatwoot.contacts.length, 1);
    const inboxOf = (id: number) => chatwoot.conversations.find((conversation) => conversation.id === id)!.inbox_id;
    assert.deepEqual([inboxOf(first.conversation_id), inboxOf(other.conversation_id)], [bridge.inbox, second]);

    await chatwoot.agentSays(other.conversation_id, "from the second");
    const { from } = await stage.arrival(ANA, ({ text }) => text === "*Maria:*\nfrom the second");
    assert.ok(from.startsWith(SECOND), from);

    chatwoot.largestFile = 10;
    const file = sampleFile("png").toString("base64");
    await write({ to: LINE, file, filename: "door.png", mimetype: "image/png", kind: "document", caption: "the door" });
    await shown("the door\n[door.png: Chatwoot does not take the file]");
  },
);

onStage(
  "through kills of the bridge, the gateway and Chatwoot, each message arrives once, in order, both ways",
  async (stage) => {
    await bothWays(stage, { messages: 30 });
  },
);
