import assert from "node:assert/strict";
import { CLOUD_URL, FILES, hashOf, KEY, LINE, listen, load, local, tell, TO, VERIFY_TOKEN, wait } from "./program.mjs";

const { Client, MessageType } = await load("@great-detail/whatsapp");
const headers = { Authorization: `Bearer ${KEY}` };
const app = new Client({ prefixUrl: CLOUD_URL, request: { headers } });

async function valueOf(message) {
  switch (message.type) {
    case MessageType.Text:
      return message.text.body;
    case MessageType.Image:
    case MessageType.Document:
    case MessageType.Audio:
    case MessageType.Video:
    case MessageType.Sticker: {
      const { url } = await app.media.getURL({ mediaID: message[message.type].id }).json();
      // The library downloads without a key of its own.
      return await hashOf(await app.media.download({ mediaURL: url, request: { headers } }));
    }
    case MessageType.Location:
      return `${message.location.latitude},${message.location.longitude}`;
    case MessageType.Contacts:
      return message.contacts[0].name.formatted_name;
    case MessageType.Reaction:
      return message.reaction.emoji;
    case MessageType.Button:
      return message.button.payload;
    case MessageType.Interactive:
      return message.interactive[message.interactive.type].id;
    case MessageType.Unsupported:
      return String(message.errors[0].code);
  }
}

const secret = await listen(
  async (query) => {
    const asked = await app.webhook.register({ method: "GET", query, headers: {} });
    if (asked.verifyToken !== VERIFY_TOKEN) throw new Error("another token");
    return asked.accept();
  },
  async (body, headers) => {
    const event = await app.webhook.eventNotification({ method: "POST", query: {}, headers, body });
    await event.verifySignature(secret);
    const [{ changes: [{ field, value }] }] = event.eventNotification.entry;
    const [{ profile: { name }, wa_id: sender, user_id: user }] = value.contacts;
    for (const { id, status, biz_opaque_callback_data: data, errors } of value.statuses ?? []) {
      tell({ status, id, data, error: errors?.[0].code, recipient: sender });
    }
    for (const message of value.messages ?? []) {
      const got = message.type === "interactive" ? message.interactive.type : message.type;
      const { id, context } = message;
      tell({ got, value: await valueOf(message), id, context: context?.id, sender, name, user });
    }
    for (const { id, text } of field === "smb_message_echoes" ? value.message_echoes : []) {
      tell({ got: "echo", value: text.body, id });
    }
    event.accept();
  },
);

async function send(kind, type, part, more = {}) {
  const answer = await app.message.createMessage({ phoneNumberID: LINE, to: TO, type, [type]: part, ...more }).json();
  const [{ id }] = answer.messages;
  tell({ sent: kind, id });
  return id;
}
const link = (name) => ({ link: `${FILES}/${name}` });

const data = { biz_opaque_callback_data: "order 7" };
const text = await send("text", "text", { body: "great-detail text ñ😀" }, data);
await send("reply", "text", { body: "great-detail reply" }, { context: { message_id: text } });
await send("image", "image", { ...link("a.jpg"), caption: "great-detail image" });
await send("video", "video", { ...link("a.mp4"), caption: "great-detail video" });
await send("document", "document", { ...link("a.pdf"), filename: "bill.pdf", caption: "great-detail document" });
await send("audio", "audio", link("a.mp3"));
await send("sticker", "sticker", link("a.webp"));
const upload = { phoneNumberID: LINE, file: local("a.jpg", "image/jpeg"), filename: "a.jpg", mimeType: "image/jpeg" };
const { id: image } = await app.media.upload(upload).json();
await send("image_by_id", "image", { id: image, caption: "great-detail image by id" });
await send("location", "location", { latitude: 41.5, longitude: 2.25, name: "Shop", address: "Main St" });
const name = { formatted_name: "Bo Li", first_name: "Bo" };
await send("contacts", "contacts", [{ name, phones: [{ phone: "+34600111222", type: "CELL" }] }]);
await send("reaction", "reaction", { message_id: text, emoji: "👍" });
const buttons = ["Yes", "No"].map((title) => ({ type: "reply", reply: { id: title.toLowerCase(), title } }));
await send("buttons", "interactive", { type: "button", body: { text: "great-detail buttons?" }, action: { buttons } });
const rows = [{ id: "red", title: "Red", description: "warm" }, { id: "blue", title: "Blue" }];
const action = { button: "Colours", sections: [{ title: "All", rows }] };
await send("list", "interactive", { type: "list", body: { text: "great-detail list?" }, action });

assert.ok((await app.media.delete({ mediaID: image }).json()).success);
const numbers = await app.phoneNumbers.listPhoneNumbers({ businessAccountID: LINE }).json();
assert.deepEqual(numbers.data.map(({ id }) => id), [LINE]);
assert.equal((await app.phoneNumbers.getPhoneNumber({ phoneNumberID: LINE }).json()).id, LINE);
assert.ok((await app.businessProfile.getBusinessProfile({ phoneNumberID: LINE }).json()).data);
assert.ok((await app.template.list(LINE, {}).json()).data);
assert.ok((await app.subscribedApps.listSubscriptions({ businessAccountID: LINE }).json()).data);
tell({ checked: "media, numbers, profile, templates and subscriptions" });
await wait();
