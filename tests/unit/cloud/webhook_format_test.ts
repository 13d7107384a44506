/** Events in the shape of the official API: every kind of message, every status, in ASCII and signed. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { fileIdOf, mediaIdOf } from "../../../src/cloud/media_id.ts";
import { personOf, userIdOf } from "../../../src/cloud/user_id.ts";
import { cloudFormat } from "../../../src/cloud/webhook_format.ts";
import type { EventData, LoggedEvent } from "../../../src/event/event.ts";
import { type Line } from "../../../src/line/line.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { mediaKeys } from "../../../src/media/rows.ts";
import type { Message } from "../../../src/message/message.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { tells } from "../../../src/webhook/format.ts";
import { MemoryDisk, MemoryKv } from "../../support/memory_kv.ts";

const LINE = "4915200000043";
const ANA = "34600111222";
const FILE = "med_01kf0m3e4v8s2q6w9x1y5z7abc";
const ASKED = "msg_asked";

type Json = Record<string, unknown>;

const kv = new MemoryKv(new MemoryDisk());
{
  const change = new Change();
  change.set(lineKeys.line("ses_1"), { phone: LINE } as Line);
  const file = { id: FILE, sha256: "00ff", size: 3, accountId: "acc_1", mimetype: "image/png", filename: "a.png" };
  change.set(mediaKeys.file(FILE), { ...file, expiresAt: null });
  change.set(messageKeys.messageOfNetworkId("ses_1", "3EB0OURS"), ASKED);
  const options = [{ id: "red", label: "Rojo", description: "warm" }, { id: "blue", label: "Azul", description: null }];
  const message = (id: string, more: object) =>
    change.set(messageKeys.message(id), { id, to: ANA, ...more } as Message);
  const choices = { content: { kind: "choices", options } };
  message(ASKED, { content: { kind: "text", text: "?" }, manner: { cloud: { callbackData: "order 7" } } });
  message("msg_buttons", { ...choices, manner: { cloud: { interactive: "button" } } });
  message("msg_list", { ...choices, manner: { cloud: { interactive: "list" } } });
  message("msg_described", choices);
  message("msg_template", { content: { kind: "template" } });
  await kv.commit(change);
}
const format = cloudFormat(kv);

async function valueOf(event: Partial<LoggedEvent>): Promise<Json> {
  const logged = {
    id: "evt_1",
    accountId: "acc_1",
    sessionId: "ses_1",
    sessionName: "x",
    createdAt: 1_700_000_000_000,
  };
  const body = await format.bodyOf({ ...logged, ...event } as LoggedEvent);
  assert.match(body, /^[\x20-\x7e]*$/);
  const { object, entry: [{ id, changes: [change, ...others] }, ...entries] } = JSON.parse(body);
  assert.deepEqual([object, id, others, entries], ["whatsapp_business_account", LINE, [], []]);
  const { messaging_product, metadata, ...value } = change.value;
  assert.equal(messaging_product, "whatsapp");
  assert.deepEqual(metadata, { display_phone_number: LINE, phone_number_id: LINE });
  return { field: change.field, ...value };
}

const received: EventData<"message.received"> = {
  from: `${ANA}@s.whatsapp.net`,
  chat: `${ANA}@s.whatsapp.net`,
  number: ANA,
  pushName: "Ana",
  messageId: "3A01",
  timestamp: 1_700_000_001,
  type: "conversation",
  text: null,
  isForwarded: false,
};
const media = { url: `https://x/media/${FILE}?expires=1`, mimetype: "image/png", size: 3, filename: "a.png" };
const shownFile = { id: mediaIdOf(FILE), mime_type: "image/png", sha256: "AP8=" };
const target = { target: { messageId: "3EB0OURS", fromMe: true } };
const unsupported = (kind: string) => ({
  type: "unsupported",
  unsupported: { type: kind },
  errors: [{
    code: 131051,
    title: "Unsupported message type",
    message: "Unsupported message type",
    error_data: { details: "The message is of a type that is not supported." },
  }],
});
const chose = (messageId: string) => ({ text: "1", choice: { messageId, id: "red", label: "Rojo" } });

/** What is received, and what a body says beside its sender, id and time. */
const KINDS: [string, Partial<typeof received>, Json][] = [
  ["text", { text: "ñandú 😀" }, { type: "text", text: { body: "ñandú 😀" } }],
  ["link", { type: "extendedTextMessage", text: "x" }, { type: "text", text: { body: "x" } }],
  ["image", { type: "imageMessage", media, text: "look" }, { type: "image", image: { ...shownFile, caption: "look" } }],
  ["video", { type: "videoMessage", media }, { type: "video", video: shownFile }],
  ["voice", { type: "audioMessage", media, details: { voice: true } }, {
    type: "audio",
    audio: { ...shownFile, voice: true },
  }],
  ["document", { type: "documentMessage", media }, { type: "document", document: { ...shownFile, filename: "a.png" } }],
  ["sticker", { type: "stickerMessage", media }, { type: "sticker", sticker: { ...shownFile, animated: false } }],
  ["lost file", { type: "imageMessage", media: { ...media, url: null, reason: "it is gone" } }, {
    type: "unsupported",
    errors: [{
      code: 131052,
      title: "Media download error",
      message: "Media download error",
      error_data: { details: "The file could not be downloaded: it is gone." },
    }],
  }],
  ["reaction", { type: "reactionMessage", text: "👍", details: target }, {
    type: "reaction",
    reaction: { message_id: ASKED, emoji: "👍" },
  }],
  ["reaction taken back", { type: "reactionMessage", details: { ...target, removed: true } }, {
    type: "reaction",
    reaction: { message_id: ASKED },
  }],
  ["location", { type: "locationMessage", text: "Shop", details: { latitude: 1.5, longitude: 2, name: "Shop" } }, {
    type: "location",
    location: { latitude: 1.5, longitude: 2, name: "Shop" },
  }],
  ["contacts", { type: "contactMessage", details: { contacts: [{ name: "Bo", vcard: "", phones: ["49151"] }] } }, {
    type: "contacts",
    contacts: [{
      name: { formatted_name: "Bo", first_name: "Bo" },
      phones: [{ phone: "+49151", wa_id: "49151", type: "CELL" }],
    }],
  }],
  ["poll", { type: "pollCreationMessage", text: "?" }, unsupported("poll_creation")],
  ["undecryptable", { type: "unknown", details: { undecryptable: true } }, unsupported("undecryptable")],
  ["event", { type: "unknown", details: { kind: "eventMessage" } }, unsupported("eventMessage")],
  ["order", { type: "unknown", text: "hi", details: { order: { id: "7", itemCount: 2, total: 5, currency: "EUR" } } }, {
    type: "order",
    order: {
      catalog_id: "7",
      text: "hi",
      product_items: [{ product_retailer_id: "7", quantity: 2, item_price: 5, currency: "EUR" }],
    },
  }],
  ["tap on a template", {
    type: "unknown",
    text: "Yes",
    details: { kind: "templateButtonReplyMessage", selectedId: "y" },
  }, { type: "button", button: { payload: "y", text: "Yes" } }],
  ["tap on a list", { type: "listResponseMessage", text: "Yes", details: { selectedId: "y", description: "d" } }, {
    type: "interactive",
    interactive: { type: "list_reply", list_reply: { id: "y", title: "Yes", description: "d" } },
  }],
  ["answer to buttons", chose("msg_buttons"), {
    type: "interactive",
    interactive: { type: "button_reply", button_reply: { id: "red", title: "Rojo" } },
    context: { from: LINE, id: "msg_buttons" },
  }],
  ["answer to a list", chose("msg_list"), {
    type: "interactive",
    interactive: { type: "list_reply", list_reply: { id: "red", title: "Rojo", description: "warm" } },
    context: { from: LINE, id: "msg_list" },
  }],
  ["answer to choices of the API", chose("msg_described"), {
    type: "interactive",
    interactive: { type: "list_reply", list_reply: { id: "red", title: "Rojo", description: "warm" } },
    context: { from: LINE, id: "msg_described" },
  }],
  ["answer to a template", chose("msg_template"), {
    type: "button",
    button: { payload: "red", text: "Rojo" },
    context: { from: LINE, id: "msg_template" },
  }],
  ["reply", {
    text: "x",
    quoted: { messageId: "3EB0OURS", fromMe: true, participant: `${LINE}@s.whatsapp.net`, text: "?" },
  }, { type: "text", text: { body: "x" }, context: { from: LINE, id: ASKED } }],
  ["forwarded", { text: "x", isForwarded: true }, { type: "text", text: { body: "x" }, context: { forwarded: true } }],
  ["from an ad", { text: "x", ad: { title: "Sale", sourceUrl: "https://a", clickId: "c" } }, {
    type: "text",
    text: { body: "x" },
    referral: { source_url: "https://a", headline: "Sale", ctwa_clid: "c" },
  }],
];

for (const [name, given, said] of KINDS) {
  Deno.test(`a received message in the official shape: ${name}`, async () => {
    const value = await valueOf({ event: "message.received", data: { ...received, ...given } });
    const from = { from: ANA, from_user_id: `ES.${ANA}`, id: "3A01", timestamp: "1700000001" };
    assert.deepEqual(value, {
      field: "messages",
      contacts: [{ profile: { name: "Ana" }, wa_id: ANA, user_id: `ES.${ANA}` }],
      messages: [{ ...from, ...said }],
    });
  });
}

Deno.test("a hidden number is named by its JID, a member of a group beside the group", async () => {
  const hidden = await valueOf({
    event: "message.received",
    data: { ...received, from: "123@lid", chat: "123@lid", number: null, pushName: null, text: "x" },
  });
  assert.deepEqual(hidden.contacts, [{ profile: { name: "123@lid" }, wa_id: "123@lid", user_id: "ZZ.123" }]);
  const inGroup = await valueOf({
    event: "message.received",
    data: { ...received, chat: "1-2@g.us", from: "1-2@g.us", participant: `${ANA}@s.whatsapp.net`, text: "x" },
  });
  const [{ from, group_id }] = inGroup.messages as [Json];
  assert.deepEqual([from, group_id], [ANA, "1-2@g.us"]);
});

Deno.test("what the owner writes is an echo, a vote an answer", async () => {
  const echo = await valueOf({
    event: "message.echo",
    data: { ...received, number: LINE, text: "on my way", fromMe: true },
  });
  assert.deepEqual(echo, {
    field: "smb_message_echoes",
    contacts: [{ profile: { name: ANA }, wa_id: ANA, user_id: `ES.${ANA}` }],
    message_echoes: [{
      from: LINE,
      to: ANA,
      to_user_id: `ES.${ANA}`,
      id: "3A01",
      timestamp: "1700000001",
      type: "text",
      text: { body: "on my way" },
    }],
  });
  const data = {
    messageId: "msg_buttons",
    networkId: "3EB0",
    chat: received.chat,
    number: ANA,
    id: "red",
    label: "Rojo",
  };
  const vote = await valueOf({ event: "choice.made", data: { ...data, how: "vote" } });
  assert.deepEqual((vote.messages as Json[])[0], {
    from: ANA,
    from_user_id: `ES.${ANA}`,
    id: "evt_1",
    timestamp: "1700000000",
    context: { from: LINE, id: "msg_buttons" },
    type: "interactive",
    interactive: { type: "button_reply", button_reply: { id: "red", title: "Rojo" } },
  });
  const told = (how: string) => tells("cloud", { event: "choice.made", data: { ...data, how } } as LoggedEvent);
  assert.deepEqual([told("vote"), told("text"), told("tap")], [true, false, false]);
});

Deno.test("statuses name the person, give back the caller's data, and say why a message failed", async () => {
  const of = { messageId: ASKED, networkId: "3EB0OURS" };
  const sentAt = "2026-01-02T03:04:05.900Z";
  const about = { recipient_id: ANA, recipient_user_id: `ES.${ANA}`, biz_opaque_callback_data: "order 7" };
  const contacts = [{ profile: { name: ANA }, wa_id: ANA, user_id: `ES.${ANA}` }];
  assert.deepEqual(await valueOf({ event: "message.sent", data: { ...of, jobId: "j", to: ANA, sentAt } }), {
    field: "messages",
    contacts,
    statuses: [{ id: ASKED, status: "sent", timestamp: "1767323045", ...about }],
  });
  for (const status of ["delivered", "read"] as const) {
    const value = await valueOf({ event: "message.status", data: { ...of, status, participant: null, at: sentAt } });
    assert.deepEqual(value.statuses, [{ id: ASKED, status, timestamp: "1767323045", ...about }]);
  }
  const inGroup = await valueOf({
    event: "message.status",
    data: { ...of, messageId: "msg_group", status: "read", participant: `${ANA}@s.whatsapp.net`, at: sentAt },
  });
  assert.deepEqual(inGroup.contacts, contacts);
  const failed = async (code: string) => {
    const error = { code, message: "No." };
    const value = await valueOf({ event: "message.failed", data: { ...of, jobId: "j", to: ANA, error } });
    const [{ status, errors }] = value.statuses as [{ status: string; errors: Json[] }];
    assert.equal(status, "failed");
    assert.deepEqual(errors[0]!.error_data, { details: `No. (${code})` });
    return errors[0]!.code;
  };
  assert.deepEqual(
    await Promise.all(["number_not_registered", "file_unavailable", "expired"].map(failed)),
    [131026, 131053, 131000],
  );
});

Deno.test("a test is a status of no message", async () => {
  const value = await valueOf({ event: "webhook.test", data: { webhookId: "whk_1", at: "" } });
  const [{ id, status, recipient_id }] = value.statuses as [Json];
  assert.deepEqual([id, status, recipient_id], ["evt_1", "sent", LINE]);
});

Deno.test("the signature is the HMAC of the body with the newest secret", () => {
  const body = new TextEncoder().encode("{}");
  const headers = format.signatureHeaders({ id: "evt_1", at: 0, body, secrets: ["new", "old"] });
  const digest = createHmac("sha256", "new").update(body).digest("hex");
  assert.equal(headers["x-hub-signature-256"], `sha256=${digest}`);
});

Deno.test("ids of media and people lead back to the file and the person", () => {
  assert.match(mediaIdOf(FILE), /^\d+$/);
  for (const id of [FILE, "med_7zzzzzzzzzzzzzzzzzzzzzzzzz", "med_00000000000000000000000001"]) {
    assert.equal(fileIdOf(mediaIdOf(id)), id);
  }
  for (const id of ["", "x", "-1", "0", "9".repeat(40), "1e3"]) assert.equal(fileIdOf(id), null, id);
  for (const person of [ANA, "4915200000043", "14155550123", "88216000001", "123@lid"]) {
    const id = userIdOf(person);
    assert.match(id, /^[A-Z]{2}\.\d+$/);
    assert.equal(personOf(id), person);
  }
  assert.deepEqual([userIdOf("14155550123"), userIdOf("447700900123")], ["US.14155550123", "GB.447700900123"]);
  assert.equal(personOf("34600111222"), null);
});
