/** What a client hears of its line: what became of what it sent, and every type of message that comes in. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { INCOMING_TYPES } from "../../src/whatsapp/incoming.ts";
import { onSharedStage, type Stage } from "../support/stage.ts";
import { type Delivered, subscribe, type Subscriber } from "../support/subscriber.ts";

const onReceived = onSharedStage("what a client hears of its line");

const jidOf = (number: string) => `${number}@s.whatsapp.net`;

onReceived("a sent message is reported as sent, delivered and read", async (stage, [LINE, ANA]) => {
  await stage.addPhone(ANA);
  const line = await stage.linkLine(LINE);
  const client = await subscribe(stage, { events: ["message.sent", "message.status"] });
  const messageId = await stage.sendText(line, ANA, "Your table is ready 🍽️");
  const { id } = await stage.arrival(ANA, ({ text }) => text === "Your table is ready 🍽️");
  const sent = await client.event("message.sent", ({ event }) => event === "message.sent");
  assert.equal(sent.sessionId, line.sessionId);
  assert.equal(sent.sessionName, `line ${LINE}`);
  const { jobId, sentAt, ...rest } = sent.data;
  assert.deepEqual(rest, { messageId, networkId: id, to: ANA });
  assert.match(jobId, /^job_/);
  assert.equal((await stage.status(messageId, "sent")).sentAt, sentAt);

  await stage.control.call("POST", `/phones/${ANA}/read`, { id });
  await client.event("read", ({ data }) => data.status === "read");
  const delivered = client.delivered();
  assert.deepEqual(delivered.map(({ event, data }) => [event, data.status]), [
    ["message.sent", undefined],
    ["message.status", "delivered"],
    ["message.status", "read"],
  ]);
  for (const { data } of delivered.slice(1)) {
    const { status: _, at, ...about } = data;
    assert.deepEqual(about, { messageId, networkId: id, participant: null });
    assert.ok(Date.parse(at) >= Date.parse(sentAt) - 1_000, "in the order of time, to the network's second");
  }
  await client.end();
});

onReceived(
  "in a group each member who received or read a message is reported once",
  async (stage, [LINE, ANA, BEN]) => {
    await stage.addPhone(ANA);
    await stage.addPhone(BEN);
    const line = await stage.linkLine(LINE);
    const { id: to } = await stage.control.call("POST", "/groups", { subject: "Team", participants: [LINE, ANA, BEN] });
    const client = await subscribe(stage, { events: ["message.status"] });
    const messageId = await stage.sendText(line, to, "to everybody in the team");
    const lids: string[] = [];
    for (const number of [ANA, BEN]) {
      lids.push((await stage.control.call("GET", `/phones/${number}`)).lid);
      const { id } = await stage.arrival(number, ({ text }) => text === "to everybody in the team");
      for (let twice = 0; twice < 2; twice++) await stage.control.call("POST", `/phones/${number}/read`, { id });
    }
    const delivered = await client.count(4);
    assert.ok(delivered.every(({ data }) => data.messageId === messageId));
    for (const lid of lids) {
      const statuses = delivered.filter(({ data }) => data.participant === lid).map(({ data }) => data.status);
      assert.deepEqual(statuses, ["delivered", "read"]);
    }
    await client.end();
  },
);

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const KEY = { remoteJid: jidOf("4915200000001"), id: "3EB0FFFFFFFFFFFFFFFFFF", fromMe: false };

interface Expected {
  type: string;
  text: string | null;
  details?: unknown;
  file?: { mimetype: string; filename: RegExp };
}

/** What a phone sends, and what the client is to read. */
const TABLE: [title: string, sends: Record<string, unknown>, expected: Expected][] = [
  ["a text", { text: 'Hello 👋🏽 \u0000 \u2028 "quoted" \\' }, {
    type: "conversation",
    text: 'Hello 👋🏽 \u0000 \u2028 "quoted" \\',
  }],
  ["a text with a lone surrogate, which no JSON reader likes", { text: "a\ud83d b" }, {
    type: "conversation",
    text: "a\ufffd b",
  }],
  ["a text as long as can be", { text: "ü".repeat(65_536) }, { type: "conversation", text: "ü".repeat(65_536) }],
  [
    "a link",
    { message: { extendedTextMessage: { text: "see https://a.example", matchedText: "https://a.example" } } },
    {
      type: "extendedTextMessage",
      text: "see https://a.example",
      details: { link: "https://a.example" },
    },
  ],
  ["an image with a caption", { file: PNG, kind: "image", mimetype: "image/png", caption: "the menu" }, {
    type: "imageMessage",
    text: "the menu",
    file: { mimetype: "image/png", filename: /^image-\d{8}-\d{6}\.png$/ },
  }],
  ["an image without one", { file: PNG, kind: "image", mimetype: "image/png" }, {
    type: "imageMessage",
    text: null,
    file: { mimetype: "image/png", filename: /^image-.*\.png$/ },
  }],
  ["a video with a caption", { file: PNG, kind: "video", mimetype: "video/mp4", caption: "look" }, {
    type: "videoMessage",
    text: "look",
    file: { mimetype: "video/mp4", filename: /^video-.*\.mp4$/ },
  }],
  ["a voice note", { file: PNG, kind: "audio", mimetype: "audio/ogg; codecs=opus" }, {
    type: "audioMessage",
    text: null,
    details: { voice: true },
    file: { mimetype: "audio/ogg; codecs=opus", filename: /^audio-.*\.ogg$/ },
  }],
  ["a document with a caption", {
    file: PNG,
    kind: "document",
    mimetype: "application/pdf",
    filename: "Rechnung Nr. 7 – März.pdf",
    caption: "due",
  }, {
    type: "documentMessage",
    text: "due",
    details: { title: "Rechnung Nr. 7 – März.pdf" },
    file: { mimetype: "application/pdf", filename: /^Rechnung Nr\. 7 – März\.pdf$/ },
  }],
  ["a document without one", { file: PNG, kind: "document", filename: "a.bin" }, {
    type: "documentMessage",
    text: null,
    details: { title: "a.bin" },
    file: { mimetype: "application/octet-stream", filename: /^a\.bin$/ },
  }],
  ["a sticker", { file: PNG, kind: "sticker" }, {
    type: "stickerMessage",
    text: null,
    file: { mimetype: "image/webp", filename: /^sticker-.*\.webp$/ },
  }],
  ["a reaction", { message: { reactionMessage: { key: { ...KEY, fromMe: true }, text: "❤️" } } }, {
    type: "reactionMessage",
    text: "❤️",
    details: { target: { messageId: KEY.id, fromMe: false } },
  }],
  ["a location", {
    message: { locationMessage: { degreesLatitude: 52.5, degreesLongitude: 13.25, name: "Café", address: "Weg 1" } },
  }, {
    type: "locationMessage",
    text: "Café",
    details: { latitude: 52.5, longitude: 13.25, name: "Café", address: "Weg 1" },
  }],
  ["a live location", { message: { liveLocationMessage: { degreesLatitude: 1.5, degreesLongitude: -2.5 } } }, {
    type: "liveLocationMessage",
    text: null,
    details: { latitude: 1.5, longitude: -2.5 },
  }],
  ["a contact", { message: { contactMessage: { displayName: "Carla", vcard: "BEGIN:VCARD\nEND:VCARD" } } }, {
    type: "contactMessage",
    text: "Carla",
    details: { contacts: [{ name: "Carla", vcard: "BEGIN:VCARD\nEND:VCARD", phones: [] }] },
  }],
  ["contacts", {
    message: { contactsArrayMessage: { displayName: "2", contacts: [{ displayName: "A", vcard: "x" }] } },
  }, { type: "contactsArrayMessage", text: "2", details: { contacts: [{ name: "A", vcard: "x", phones: [] }] } }],
  ["a poll", {
    message: {
      pollCreationMessage: {
        name: "When?",
        options: [{ optionName: "now" }, { optionName: "1" }],
        selectableOptionsCount: 1,
      },
    },
  }, { type: "pollCreationMessage", text: "When?", details: { options: ["now", "1"], selectable: 1 } }],
  ["a chosen button", { message: { buttonsResponseMessage: { selectedButtonId: "2", selectedDisplayText: "Yes" } } }, {
    type: "buttonsResponseMessage",
    text: "Yes",
    details: { selectedId: "2" },
  }],
  ["a chosen row", {
    message: { listResponseMessage: { title: "Row", singleSelectReply: { selectedRowId: "10" } } },
  }, { type: "listResponseMessage", text: "Row", details: { selectedId: "10" } }],
  ["anything else", { message: { groupInviteMessage: { groupJid: "1@g.us", inviteCode: "x", caption: "join" } } }, {
    type: "unknown",
    text: "join",
    details: { kind: "groupInviteMessage", invite: { groupId: "1@g.us", code: "x" } },
  }],
];

onReceived(
  "each of the fifteen types, and any other, arrives as the specification says",
  async (stage, [LINE, ANA]) => {
    await stage.addPhone(ANA, "Ana 🌻");
    const line = await stage.linkLine(LINE);
    const client = await subscribe(stage, { events: ["message.received"] });
    const startedAt = Math.floor(Date.now() / 1000);
    for (const [title, sends, expected] of TABLE) {
      const { id } = await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, ...sends });
      const { data, sessionId } = await client.event(title, ({ data }) => data.messageId === id);
      assert.equal(sessionId, line.sessionId);
      const { media, timestamp, ...fields } = data;
      const { file, ...wanted } = expected;
      const usual = {
        from: jidOf(ANA),
        chat: jidOf(ANA),
        number: ANA,
        pushName: "Ana 🌻",
        messageId: id,
        isForwarded: false,
      };
      assert.deepEqual(fields, { ...usual, ...wanted }, title);
      assert.ok(Number.isInteger(timestamp) && timestamp >= startedAt && timestamp <= Date.now() / 1000 + 1, title);
      assert.equal(media === undefined, file === undefined, `${title}: media is there only with a file`);
      if (!file) continue;
      assert.deepEqual(Object.keys(media).sort(), ["filename", "mimetype", "size", "url"]);
      assert.equal(media.mimetype, file.mimetype);
      assert.equal(media.size, bytesOf(PNG).length);
      assert.match(media.filename, file.filename);
      const downloaded = new Uint8Array(await (await fetch(media.url)).arrayBuffer());
      assert.equal(sha256(downloaded), sha256(bytesOf(PNG)), title);
    }
    const types = new Set(client.delivered().map(({ data }) => data.type));
    assert.deepEqual([...INCOMING_TYPES, "unknown"].filter((type) => !types.has(type)), [], "every type came");
    await client.end();
  },
);

onReceived(
  "groups, the owner's own words, edits, deletions and reactions that are taken back",
  async (stage, [LINE, ANA, BEN]) => {
    await stage.addPhone(ANA, "Ana");
    await stage.addPhone(BEN, "Ben");
    await stage.linkLine(LINE);
    const { id: group } = await stage.control.call("POST", "/groups", {
      subject: "Team",
      participants: [BEN, ANA, LINE],
    });
    const client = await subscribe(stage);

    const hello = await says(stage, ANA, { to: group, text: "hello all" });
    const inGroup = await heard(client, hello);
    assert.equal(inGroup.event, "message.received");
    assert.equal(inGroup.data.from, group);
    assert.equal(inGroup.data.number, ANA, "whoever wrote in the group");
    assert.equal(inGroup.data.pushName, "Ana");
    assert.match(inGroup.data.participant, /@lid$/);

    // A client that answers all that it receives must not answer its own people.
    const own = await heard(client, await says(stage, LINE, { to: ANA, text: "written on the shop's phone" }));
    assert.equal(own.event, "message.echo");
    const { timestamp: _, messageId: __, ...echo } = own.data;
    assert.deepEqual(echo, {
      from: jidOf(ANA),
      number: LINE,
      pushName: `Phone ${LINE}`,
      type: "conversation",
      text: "written on the shop's phone",
      chat: jidOf(ANA),
      isForwarded: false,
      fromMe: true,
    });

    const first = await says(stage, ANA, { to: LINE, text: "two pizzas" });
    const key = { ...KEY, remoteJid: jidOf(LINE), id: first, fromMe: true };
    const edit = { protocolMessage: { key, type: "MESSAGE_EDIT", editedMessage: { conversation: "three pizzas" } } };
    await says(stage, ANA, { to: LINE, message: edit });
    const edited = await client.event("an edit", ({ event }) => event === "message.edited");
    assert.deepEqual(edited.data, { messageId: first, chat: jidOf(ANA), number: ANA, text: "three pizzas" });
    await says(stage, ANA, { to: LINE, message: { protocolMessage: { key, type: "REVOKE" } } });
    const deleted = await client.event("a deletion", ({ event }) => event === "message.deleted");
    assert.deepEqual(deleted.data, { messageId: first, chat: jidOf(ANA), number: ANA });
    const takenBack = { reactionMessage: { key: { ...key, fromMe: false }, text: "" } };
    const removed = await heard(client, await says(stage, ANA, { to: LINE, message: takenBack }));
    assert.deepEqual([removed.data.type, removed.data.text], ["reactionMessage", null]);
    assert.equal(removed.data.details.removed, true);
    assert.equal(client.delivered().filter(({ data }) => data.type === "unknown").length, 0, "no change is a message");
    await client.end();
  },
);

onReceived(
  "only its author edits a message of a group, and an admin deletes what others wrote",
  async (stage, [LINE, ANA, BEN]) => {
    await stage.addPhone(ANA, "Ana");
    await stage.addPhone(BEN, "Ben");
    await stage.linkLine(LINE);
    // The first is its admin.
    const participants = [BEN, ANA, LINE];
    const { id: group } = await stage.control.call("POST", "/groups", { subject: "Team", participants });
    const client = await subscribe(stage, { events: ["message.received", "message.edited", "message.deleted"] });
    const edit = (id: string, text: string) => ({
      protocolMessage: {
        key: { ...KEY, remoteJid: jidOf(LINE), id },
        type: "MESSAGE_EDIT",
        editedMessage: { conversation: text },
      },
    });
    const deletion = (id: string) => ({
      protocolMessage: { key: { ...KEY, remoteJid: jidOf(LINE), id }, type: "REVOKE" },
    });

    const ofAna = await says(stage, ANA, { to: group, text: "pay into account 1" });
    const ofBen = await says(stage, BEN, { to: group, text: "lunch at noon" });
    for (const id of [ofAna, ofBen]) await heard(client, id);
    await says(stage, BEN, { to: group, message: edit(ofAna, "pay into account 2") });
    await says(stage, BEN, { to: LINE, message: edit(ofAna, "pay into account 2") });
    await says(stage, ANA, { to: group, message: deletion(ofBen) });
    await says(stage, ANA, { to: group, message: edit(ofAna, "pay into account 3") });
    await says(stage, BEN, { to: group, message: deletion(ofAna) });
    await client.event("the admin's deletion", ({ event }) => event === "message.deleted");
    await heard(client, await says(stage, BEN, { to: LINE, text: "behind all of them" }));
    const changes = client.delivered().filter(({ event }) => event !== "message.received");
    assert.deepEqual(changes.map(({ event, data }) => [event, data.messageId, data.number]), [
      ["message.edited", ofAna, ANA],
      ["message.deleted", ofAna, BEN],
    ]);
    await client.end();
  },
);

onReceived("an answer, a mention, a forward, a view-once file and an ad say so", async (stage, [LINE, ANA, BEN]) => {
  await stage.addPhone(ANA, "Ana");
  await stage.addPhone(BEN, "Ben");
  const line = await stage.linkLine(LINE);
  const { lid } = await stage.control.call("GET", `/phones/${LINE}`);
  const participants = [BEN, ANA, LINE];
  const { id: group } = await stage.control.call("POST", "/groups", { subject: "Team", participants });
  const client = await subscribe(stage, { events: ["message.received"] });
  await stage.sendText(line, group, "tea or coffee?");
  const { id: asked } = await stage.arrival(ANA, ({ text }) => text === "tea or coffee?");
  const contextInfo = {
    stanzaId: asked,
    participant: lid,
    quotedMessage: { conversation: "tea or coffee?" },
    mentionedJid: [lid, "77777@lid"],
    isForwarded: true,
  };
  const answer = { extendedTextMessage: { text: "@shop tea", contextInfo } };
  const { data } = await heard(client, await says(stage, ANA, { to: group, message: answer }));
  assert.equal(data.chat, group);
  assert.match(data.participant, /@lid$/);
  assert.deepEqual(data.quoted, {
    messageId: asked,
    fromMe: true,
    participant: `${line.number}@s.whatsapp.net`,
    text: "tea or coffee?",
  });
  assert.deepEqual(data.mentions, [jidOf(LINE), "77777@lid"]);
  assert.equal(data.isForwarded, true);
  assert.deepEqual(Object.keys(data).filter((name) => ["viewOnce", "ad", "details"].includes(name)), []);

  const once = { viewOnceMessageV2: { message: { locationMessage: { degreesLatitude: 1, degreesLongitude: 2 } } } };
  const seenOnce = await heard(client, await says(stage, ANA, { to: LINE, message: once }));
  assert.deepEqual([seenOnce.data.type, seenOnce.data.viewOnce], ["locationMessage", true]);

  const externalAdReply = { title: "Sale", sourceType: "ad", sourceId: "120", ctwaClid: "AbC" };
  const fromAd = { extendedTextMessage: { text: "hello", contextInfo: { externalAdReply } } };
  const led = await heard(client, await says(stage, BEN, { to: LINE, message: fromAd }));
  assert.deepEqual(led.data.ad, { title: "Sale", sourceType: "ad", sourceId: "120", clickId: "AbC" });
  await client.end();
});

async function says(stage: Stage, from: string, message: Record<string, unknown>): Promise<string> {
  return (await stage.control.call("POST", `/phones/${from}/messages`, message)).id;
}

function heard(client: Subscriber, messageId: string): Promise<Delivered> {
  return client.event(messageId, ({ data }) => data.messageId === messageId);
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
