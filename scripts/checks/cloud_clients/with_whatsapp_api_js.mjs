import assert from "node:assert/strict";
import { CLOUD_URL, FILES, hashOf, KEY, LINE, listen, load, local, tell, TO, VERIFY_TOKEN, wait } from "./program.mjs";

const { WhatsAppAPI } = await load("whatsapp-api-js");
const { WhatsAppAPIUnexpectedError } = await load("whatsapp-api-js/errors");
const {
  ActionButtons,
  ActionCTA,
  ActionList,
  Audio,
  Body,
  Button,
  Contacts,
  Document,
  Footer,
  Header,
  Image,
  Interactive,
  ListSection,
  Location,
  Name,
  Phone,
  Reaction,
  Row,
  Sticker,
  Text,
  Video,
} = await load("whatsapp-api-js/messages");

const GRAPH = "https://graph.facebook.com";
/** The base URL has no setting. */
const ponyfill = { fetch: (url, init) => fetch(String(url).replace(GRAPH, CLOUD_URL), init) };
const common = { token: KEY, webhookVerifyToken: VERIFY_TOKEN, v: "v24.0", ponyfill };

async function valueOf(message) {
  switch (message.type) {
    case "text":
      return message.text.body;
    case "image":
    case "document":
    case "audio":
    case "video":
    case "sticker": {
      const { url } = await app.retrieveMedia(message[message.type].id);
      return await hashOf(await app.fetchMedia(url));
    }
    case "location":
      return `${message.location.latitude},${message.location.longitude}`;
    case "contacts":
      return message.contacts[0].name.formatted_name;
    case "reaction":
      return message.reaction.emoji;
    case "button":
      return message.button.payload;
    case "interactive":
      return message.interactive[message.interactive.type].id;
    case "unsupported":
      return String(message.errors[0].code);
  }
}

const secret = await listen(
  (query) => new WhatsAppAPI({ ...common, secure: false }).get(query),
  async (body, headers) => {
    try {
      await app.post(JSON.parse(body), body, headers["x-hub-signature-256"]);
    } catch (error) {
      // The library knows neither echoes nor any other field.
      if (!(error instanceof WhatsAppAPIUnexpectedError) || !body.includes("smb_message_echoes")) throw error;
    }
  },
);
const app = new WhatsAppAPI({ ...common, appSecret: secret });
app.on.message = async ({ from, name, contact, message, reply }) => {
  const got = message.type === "interactive" ? message.interactive.type : message.type;
  const { id, context } = message;
  if (message.text?.body.startsWith("to ")) {
    tell({ answered: (await reply(new Text("whatsapp-api-js answers"))).messages[0].id });
  }
  tell({ got, value: await valueOf(message), id, context: context?.id, sender: from, name, user: contact.user_id });
};
app.on.status = ({ id, status, biz_opaque_callback_data: data, error, phone }) =>
  tell({ status, id, data, error: error?.code, recipient: phone });

async function send(kind, message, context, data) {
  const answer = await app.sendMessage(LINE, TO, message, context, data);
  assert.ok(answer.messages, JSON.stringify(answer));
  const [{ id }] = answer.messages;
  tell({ sent: kind, id });
  return id;
}
const file = (name) => `${FILES}/${name}`;
async function upload(name, type) {
  const form = new FormData();
  form.set("file", local(name, type), name);
  return (await app.uploadMedia(LINE, form)).id;
}

const text = await send("text", new Text("whatsapp-api-js text ñ😀"), undefined, "order 7");
await send("reply", new Text("whatsapp-api-js reply"), text);
await send("image", new Image(file("a.jpg"), false, "whatsapp-api-js image"));
await send("video", new Video(file("a.mp4"), false, "whatsapp-api-js video"));
await send("document", new Document(file("a.pdf"), false, "whatsapp-api-js document", "bill.pdf"));
await send("audio", new Audio(file("a.mp3")));
await send("voice", new Audio(file("a.ogg"), false, true));
await send("sticker", new Sticker(file("a.webp")));
const image = await upload("a.jpg", "image/jpeg");
await send("image_by_id", new Image(image, true, "whatsapp-api-js image by id"));
await send("location", new Location(2.25, 41.5, "Shop", "Main St"));
await send("contacts", new Contacts([new Name("Bo Li", "Bo"), new Phone("+34600111222", "CELL")]));
await send("reaction", new Reaction(text, "👍"));
await send(
  "buttons",
  new Interactive(
    new ActionButtons(new Button("yes", "Yes"), new Button("no", "No")),
    new Body("whatsapp-api-js buttons?"),
    new Header("Tea"),
    new Footer("small"),
  ),
);
await send(
  "list",
  new Interactive(
    new ActionList("Colours", new ListSection("All", new Row("red", "Red", "warm"), new Row("blue", "Blue"))),
    new Body("whatsapp-api-js list?"),
  ),
);
await send(
  "link",
  new Interactive(new ActionCTA("Shop", "https://example.com/api-js"), new Body("whatsapp-api-js link")),
);
assert.ok((await app.deleteMedia(image)).success);
assert.ok((await app.blockUser(LINE, "34600111333")).block_users, "block");
assert.ok((await app.unblockUser(LINE, "34600111333")).block_users, "unblock");
tell({ checked: "media and blocks" });
await wait();
