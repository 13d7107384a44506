/** The requests of Typebot and of ERPNext's `frappe_whatsapp`, as their source makes them, on `/cloud`. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Receiver } from "../../../tests/support/receiver.ts";
import { sampleFile } from "../../../tests/support/sample_files.ts";
import type { Stage } from "../../../tests/support/stage.ts";
import { until } from "../../../tests/support/until.ts";
import { run } from "../programs.ts";

/** The line, and the phone that it talks to. */
export interface Between {
  line: string;
  to: string;
}

/** Types the page's request for a webhook, whose receiver then gets what the phone writes, and its statuses. */
async function subscribed(stage: Stage, { line, to }: Between, command: string): Promise<Receiver> {
  const receiver = await Receiver.start((response, { path }) => {
    const query = new URL(path, "http://receiver").searchParams;
    const isOurs = query.get("hub.verify_token") === "a word";
    response.writeHead(query.has("hub.challenge") && !isOurs ? 403 : 200);
    response.end(query.get("hub.challenge") ?? "");
  });
  const typed = command.replace("CALLBACK_URL", receiver.url).replace("VERIFY_TOKEN", "a word");
  assert.equal(JSON.parse(await run(".", "bash", ["-ec", typed])).success, true);
  await stage.control.call("POST", `/phones/${to}/messages`, { to: line, text: "hello bot" });
  const incoming = await until(
    () => values(receiver).flatMap(({ messages = [] }) => messages).find(({ text }) => text?.body === "hello bot"),
    "the message at the webhook",
  );
  assert.equal(incoming.from, to);
  return receiver;
}

// deno-lint-ignore no-explicit-any
function values({ requests }: Receiver): any[] {
  const bodies = requests.map(({ body }) => body).filter((body) => body !== "");
  return bodies.map((body) => JSON.parse(body).entry[0].changes[0].value);
}

export async function typebot(stage: Stage, { line, to }: Between, base: string, command: string): Promise<void> {
  const headers = { authorization: `Bearer ${stage.apiKey}`, "content-type": "application/json" };
  const number = await fetch(`${base}/v17.0/${line}`, { headers });
  assert.equal(number.status, 200);
  assert.equal((await number.json()).display_phone_number.replace(/\D/g, ""), line);
  const receiver = await subscribed(stage, { line, to }, command);
  const file = await Receiver.start((response) => {
    response.writeHead(200, { "content-type": "image/png" });
    response.end(sampleFile("png"));
  });
  const messages = [
    { type: "text", text: { body: "Welcome to the bot", preview_url: false } },
    { type: "image", image: { link: `${file.url}.png` } },
    {
      type: "interactive",
      interactive: {
        type: "button",
        body: { text: "How can we help?" },
        action: { buttons: ["Prices", "Hours"].map((title, i) => ({ type: "reply", reply: { id: `b${i}`, title } })) },
      },
    },
  ];
  for (const message of messages) {
    const body = JSON.stringify({ messaging_product: "whatsapp", to, ...message });
    const response = await fetch(`${base}/v17.0/${line}/messages`, { method: "POST", headers, body });
    assert.equal(response.status, 200, await response.text());
  }
  await stage.arrival(to, ({ text }) => text === "Welcome to the bot");
  await stage.arrival(to, ({ type }) => type === "imageMessage");
  await stage.arrival(to, ({ text }) => /How can we help\?[^]*Prices[^]*Hours/.test(text ?? ""));
  await Promise.all([file.close(), receiver.close()]);
}

export async function erpnext(stage: Stage, { line, to }: Between, base: string, command: string): Promise<void> {
  const receiver = await subscribed(stage, { line, to }, command);
  const headers = { authorization: `Bearer ${stage.apiKey}`, "content-type": "application/json" };
  const send = async (message: object) => {
    const body = JSON.stringify({ messaging_product: "whatsapp", to, ...message });
    const response = await fetch(`${base}/v21.0/${line}/messages`, { method: "POST", headers, body });
    return (await response.json()).messages[0].id as string;
  };
  const id = await send({ type: "text", text: { preview_url: true, body: "Your invoice ACC-SINV-2026-00001" } });
  await stage.arrival(to, ({ text }) => text === "Your invoice ACC-SINV-2026-00001");
  const statusOf = () => values(receiver).flatMap(({ statuses = [] }) => statuses).find((status) => status.id === id);
  assert.equal((await until(statusOf, "a status at the webhook")).status, "sent");

  // Frappe asks for a received file with a slash at the end.
  const picture = Buffer.from(sampleFile("png")).toString("base64");
  const sent = { to: line, file: picture, filename: "a.png", mimetype: "image/png", kind: "image" };
  await stage.control.call("POST", `/phones/${to}/messages`, sent);
  const image = await until(
    () => values(receiver).flatMap(({ messages = [] }) => messages).find(({ type }) => type === "image")?.image,
    "the picture at the webhook",
  );
  const media = await fetch(`${base}/v21.0/${image.id}/`, { headers });
  assert.equal(media.status, 200, "a media id with a slash at the end");
  const { url, mime_type } = await media.json();
  assert.equal(mime_type, "image/png");
  const bytes = new Uint8Array(await (await fetch(url, { headers })).arrayBuffer());
  assert.deepEqual(bytes, new Uint8Array(sampleFile("png")));
  await receiver.close();
}
