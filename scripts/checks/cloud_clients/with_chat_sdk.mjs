import { CLOUD_URL, hashOf, KEY, LINE, listen, load, local, tell, TO, VERIFY_TOKEN, wait } from "./program.mjs";

const { Actions, Button, Card, CardText, Chat, LinkButton } = await load("chat");
const { createWhatsAppAdapter } = await load("@chat-adapter/whatsapp");
const { createMemoryState } = await load("@chat-adapter/state-memory");

let secret = "";
const logger = { info() {}, debug() {}, warn() {}, error: (...said) => tell({ failed: JSON.stringify(said) }) };
logger.child = () => logger;

const make = () => {
  const whatsapp = createWhatsAppAdapter({
    apiUrl: CLOUD_URL,
    accessToken: KEY,
    phoneNumberId: LINE,
    verifyToken: VERIFY_TOKEN,
    appSecret: secret || "not known yet",
    userName: "shop",
    logger,
  });
  const chat = new Chat({
    userName: "shop",
    adapters: { whatsapp },
    state: createMemoryState(),
    concurrency: "queue",
    logger,
  });
  return { whatsapp, chat };
};

/** It downloads over HTTPS and from public addresses alone: on loopback its request is made for it. */
async function valueOf({ attachments: [file], raw: { message } }) {
  if (message.type === "location") return new URL(file.url).searchParams.get("q");
  if (!file) return message.text.body;
  const headers = { authorization: `Bearer ${KEY}` };
  const { url } = await (await fetch(`${CLOUD_URL}/v25.0/${file.fetchMetadata.mediaId}`, { headers })).json();
  return await hashOf(await fetch(url, { headers }));
}

const toWeb = (query) => new Request(`http://localhost/?${new URLSearchParams(query)}`);
secret = await listen(
  async (query) => await (await make().chat.webhooks.whatsapp(toWeb(query))).text(),
  async (body, headers) => {
    const answer = await app.webhooks.whatsapp(new Request("http://localhost/", { method: "POST", body, headers }));
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  },
);
const { whatsapp, chat: app } = make();
app.onDirectMessage(async (thread, message) => {
  const { author, raw: { message: { type, id, context, from_user_id: user } } } = message;
  if (message.text.startsWith("to ")) tell({ answered: (await thread.post("chat-sdk answers")).id });
  tell({
    got: type,
    value: await valueOf(message),
    id,
    context: context?.id,
    sender: author.userId,
    name: author.fullName,
    user,
  });
});
app.onAction(({ actionId, messageId, user, raw }) =>
  tell({
    got: raw.interactive.type,
    value: actionId,
    id: messageId,
    context: raw.context?.id,
    sender: user.userId,
    name: user.fullName,
    user: raw.from_user_id,
  })
);
app.onReaction(({ rawEmoji }) => tell({ got: "reaction", value: rawEmoji }));
await app.initialize();

const thread = whatsapp.encodeThreadId({ phoneNumberId: LINE, userWaId: TO });
async function send(kind, message) {
  const { id } = await whatsapp.postMessage(thread, message);
  tell({ sent: kind, id });
  return id;
}
async function file(name, mimeType) {
  return { files: [{ data: Buffer.from(await local(name, mimeType).arrayBuffer()), filename: name, mimeType }] };
}

const text = await send("text", "chat-sdk text ñ😀");
const { id: reply } = await whatsapp.reply(thread, text, "chat-sdk reply");
tell({ sent: "reply", id: reply });
await send("image", { markdown: "chat-sdk image", ...await file("a.jpg", "image/jpeg") });
await send("video", { markdown: "chat-sdk video", ...await file("a.mp4", "video/mp4") });
await send("document", { markdown: "chat-sdk document", ...await file("a.pdf", "application/pdf") });
await send("audio", { markdown: "", ...await file("a.mp3", "audio/mpeg") });
await send(
  "buttons",
  Card({
    title: "Tea",
    children: [
      CardText("chat-sdk buttons?"),
      Actions([Button({ id: "yes", label: "Yes" }), Button({ id: "no", label: "No" })]),
    ],
  }),
);
await send(
  "link",
  Card({
    children: [
      CardText("chat-sdk link"),
      Actions([LinkButton({ url: "https://example.com/chat-sdk", label: "Shop" })]),
    ],
  }),
);
await whatsapp.addReaction(thread, text, "👍");
tell({ sent: "reaction", id: text });
await wait();
