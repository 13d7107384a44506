/** `/cloud`: what is sent in the shape of the official API is judged at the phone. Refusals stand in the tables. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { serveLocally } from "../../src/base/listening.ts";
import type { Json } from "../../src/cli/client.ts";
import { type CloudClient, cloudClient } from "../support/cloud_client.ts";
import { userIdOf } from "../../src/cloud/user_id.ts";
import { sampleFile } from "../support/sample_files.ts";
import { type LinkedLine, onStage, type Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915200000043";
const ANA = "4917000000043";

/** A file host whose names say nothing of what they hold; types are those that the path begins with. */
function fileHost() {
  const { address, close } = serveLocally({}, ({ url }) => {
    const [, family, subtype, extension] = new URL(url).pathname.split("/");
    const headers = { "content-type": `${family}/${subtype}` };
    return new Response(new Uint8Array(sampleFile(extension!.replace(/^.*\./, ""))), { headers });
  });
  return { url: (path: string) => `http://${address}/${path}`, close };
}

const reply = (id: string, title: string) => ({ type: "reply", reply: { id, title } });

/** Each message with what of it the phone shows. */
const KINDS = (link: (path: string) => string): readonly [name: string, message: Json, shown: Json][] => [
  // Members that are null count as left out, and a text is the default.
  ["a text", { text: { body: "ñandú", preview_url: null }, context: null }, { text: "ñandú" }],
  ["an image by link, whatever its name says", {
    type: "image",
    image: { link: link("image/png/a.png?.pdf"), caption: "cat" },
  }, { type: "imageMessage", mimetype: "image/png", caption: "cat" }],
  ["an image whose address has no name", { type: "image", image: { link: link("image/jpeg/jpg") } }, {
    type: "imageMessage",
    mimetype: "image/jpeg",
  }],
  ["an image that its host calls bytes", { type: "image", image: { link: link("application/octet-stream/gif") } }, {
    type: "imageMessage",
    mimetype: "image/jpeg",
  }],
  ["a picture as a document", { type: "document", document: { link: link("image/png/b.png"), filename: "cat.png" } }, {
    type: "documentMessage",
    filename: "cat.png",
    mimetype: "image/png",
  }],
  ["a document with caption and name", {
    type: "document",
    document: { link: link("application/pdf/x.pdf"), filename: "bill.pdf", caption: "your bill" },
  }, { type: "documentMessage", filename: "bill.pdf", caption: "your bill", mimetype: "application/pdf" }],
  ["a video", { type: "video", video: { link: link("video/mp4/mp4"), caption: "film" } }, {
    type: "videoMessage",
    caption: "film",
  }],
  ["a sound", { type: "audio", audio: { link: link("audio/mpeg/mp3") } }, { type: "audioMessage", voiceNote: false }],
  ["a voice note", { type: "audio", audio: { link: link("audio/ogg/ogg"), voice: true } }, {
    type: "audioMessage",
    voiceNote: true,
  }],
  ["a sticker", { type: "sticker", sticker: { link: link("image/webp/webp") } }, { type: "stickerMessage" }],
  // Numbers may be written as texts.
  ["a location", { type: "location", location: { latitude: "41.5", longitude: 2.25, name: "Shop" } }, {
    type: "locationMessage",
    location: { latitude: 41.5, longitude: 2.25, name: "Shop", address: null },
  }],
  ["buttons with header and footer", {
    type: "interactive",
    interactive: {
      type: "button",
      header: { type: "text", text: "Tea" },
      body: { text: "Do you take some?" },
      footer: { text: "by Acme" },
      action: { buttons: [reply("y", "Yes"), reply("n", "No")] },
    },
  }, { text: "*Tea*\n\nDo you take some?\n\n1. Yes\n2. No\n\nby Acme" }],
  ["a list", {
    type: "interactive",
    interactive: {
      type: "list",
      body: { text: "Colour?" },
      action: {
        button: "See",
        sections: [{ title: "Warm", rows: [{ id: "r", title: "Red", description: "as a rose" }] }, {
          title: "Cold",
          rows: [{ id: "b", title: "Blue" }],
        }],
      },
    },
  }, { text: "Colour?\n\n1. Red – as a rose\n2. Blue" }],
  ["a link to open", {
    type: "interactive",
    interactive: {
      type: "cta_url",
      body: { text: "See the dates" },
      footer: { text: "by Acme" },
      action: { name: "cta_url", parameters: { display_text: "Dates", url: "https://a.example/dates" } },
    },
  }, { text: "See the dates\n\nDates: https://a.example/dates\n\nby Acme" }],
];

onStage("each type arrives at the phone as what it is", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  await stage.linkLine(LINE);
  const client = cloudClient(stage, LINE);
  const host = fileHost();
  await using _ = { [Symbol.asyncDispose]: host.close };
  for (const [name, message, shown] of KINDS(host.url)) {
    const seen = new Set((await stage.inbox(ANA)).map(({ id }) => id));
    await stage.status(await client.send(ANA, message), "sent");
    const arrived = await stage.arrival(ANA, ({ id }) => !seen.has(id));
    for (const [field, value] of Object.entries(shown)) assert.deepEqual(arrived[field], value, `${name}: ${field}`);
  }
});

onStage("what refers to messages, templates and cards goes along whole", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const { sessionId } = await stage.linkLine(LINE);
  const client = cloudClient(stage, LINE);

  const first = await client.send(ANA, { text: { body: "first" }, biz_opaque_callback_data: "order 7" });
  const arrived = await stage.arrival(ANA, ({ text }) => text === "first");
  await stage.status(first, "sent");
  await client.send(ANA, { text: { body: "a reply" }, context: { message_id: first } });
  assert.equal((await stage.arrival(ANA, ({ text }) => text === "a reply")).quoted.id, arrived.id);
  await client.send(ANA, { type: "reaction", reaction: { message_id: first, emoji: "👍" } });
  await stage.arrival(ANA, ({ reaction }) => reaction?.emoji === "👍");

  // One client sends the cards as JSON in a text.
  const bo = {
    name: { formatted_name: "Bo; Li", first_name: "Bo", last_name: "Li" },
    phones: [{ phone: "+34 600 111 222", wa_id: "34600111222", type: "WORK" }, { phone: "+34 600 111 223" }],
    emails: [{ email: "bo@a.example", type: "HOME" }],
    urls: [{ url: "https://a.example" }],
    addresses: [{ street: "Plaça 1", city: "Barcelona", zip: "08001", country: "Spain", type: "HOME" }],
    org: { company: "Acme, S.A.", department: "Sales", title: "Head" },
    birthday: "2012-08-18",
  };
  await client.send(ANA, { type: "contacts", contacts: JSON.stringify([bo]) });
  const { contacts: [card] } = await stage.arrival(ANA, ({ contacts }) => contacts !== null);
  assert.deepEqual(card.vcard.split("\n").slice(2, -1), [
    "FN:Bo\\; Li",
    "N:Li;Bo;;;",
    "ORG:Acme\\, S.A.;Sales",
    "TITLE:Head",
    "BDAY:2012-08-18",
    "TEL;type=WORK;waid=34600111222:+34 600 111 222",
    "TEL;waid=34600111223:+34 600 111 223",
    "EMAIL;type=HOME:bo@a.example",
    "URL:https://a.example",
    "ADR;type=HOME:;;Plaça 1;Barcelona;;08001;Spain",
  ]);

  await templates(stage, { sessionId, number: LINE }, client);

  await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "hi" });
  const { data } = await stage.event({ sessionId, number: LINE }, ({ event }) => event === "message.received");
  const read = { messaging_product: "whatsapp", status: "read", message_id: data.messageId };
  const answered = await client.ask("POST", `/v21.0/${LINE}/messages`, { ...read, typing_indicator: { type: "text" } });
  assert.deepEqual([answered.status, answered.body], [200, { success: true }]);

  const blocking = { messaging_product: "whatsapp", block_users: [{ user: `+${ANA}` }] };
  const path = `/v21.0/${LINE}/block_users`;
  const user_id = userIdOf(ANA);
  const blocked = await client.ask("POST", path, blocking);
  assert.deepEqual(blocked.body.block_users, { added_users: [{ input: `+${ANA}`, wa_id: ANA, user_id }] });
  assert.deepEqual((await client.ask("GET", path)).body.data, [{ messaging_product: "whatsapp", wa_id: ANA, user_id }]);
  const unblocked = await client.ask("DELETE", path, blocking);
  assert.deepEqual(unblocked.body.block_users, { removed_users: [{ input: `+${ANA}`, wa_id: ANA, user_id }] });
  assert.deepEqual((await client.ask("GET", path)).body.data, []);

  const profile = `/v21.0/${LINE}/whatsapp_business_profile`;
  const changed = await client.ask("POST", profile, { messaging_product: "whatsapp", about: "Open till six" });
  assert.deepEqual(changed.body, { success: true });
  const { data: [shown] } = (await client.ask("GET", `${profile}?fields=about,email`)).body;
  assert.deepEqual(shown, { messaging_product: "whatsapp", about: "Open till six" });
});

/** Templates that are made here, with parameters by place and by name, and what a button gives back. */
async function templates(stage: Stage, line: LinkedLine, client: CloudClient): Promise<void> {
  const made = await client.ask("POST", `/v21.0/${stage.accountId}/message_templates`, {
    name: "due",
    language: "en_US",
    category: "UTILITY",
    components: [
      { type: "HEADER", format: "TEXT", text: "Invoice {{1}}", example: { header_text: ["7"] } },
      { type: "BODY", text: "Hello {{1}}, {{2}} is due.", example: { body_text: [["Ana", "5 €"]] } },
      { type: "FOOTER", text: "by Acme" },
      {
        type: "BUTTONS",
        buttons: [{ type: "QUICK_REPLY", text: "Paid" }, { type: "URL", text: "Pay", url: "https://a.example/{{1}}" }],
      },
    ],
  });
  assert.deepEqual([made.status, made.body.status, made.body.category], [200, "APPROVED", "UTILITY"]);
  const components = [
    { type: "header", parameters: [{ type: "text", text: "7" }] },
    {
      type: "body",
      parameters: [{ type: "text", text: "Ana" }, { type: "currency", currency: { fallback_value: "5 €" } }],
    },
    { type: "button", sub_type: "quick_reply", index: "0", parameters: [{ type: "payload", payload: "paid-7" }] },
    { type: "button", sub_type: "url", index: 1, parameters: [{ type: "text", text: "pay/7" }] },
  ];
  const template = { name: "due", language: { code: "en_US" }, components };
  await client.send(ANA, { type: "template", template });
  const text = "*Invoice 7*\n\nHello Ana, 5 € is due.\n\nPay: https://a.example/pay/7\n\n1. Paid\n\nby Acme";
  await stage.arrival(ANA, (item) => item.text === text);
  await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "1" });
  const { data } = await stage.event(line, ({ event }) => event === "choice.made");
  assert.deepEqual([data.id, data.label], ["paid-7", "Paid"]);

  await stage.api.call("POST", "/templates", { name: "named", text: "Hello {{who}}" });
  const named = [{ type: "body", parameters: [{ type: "text", parameter_name: "who", text: "Bo" }] }];
  await client.send(ANA, {
    type: "template",
    template: { name: "named", language: { code: "en" }, components: named },
  });
  await stage.arrival(ANA, (item) => item.text === "Hello Bo");
}

onStage("an application subscribes once, is asked for the challenge, and gets signed messages", async (stage) => {
  const { sessionId } = await stage.linkLine(LINE);
  await stage.addPhone(ANA, "Ana");
  const client = cloudClient(stage, LINE);
  const posted: { text: string; signature: string }[] = [];
  const server = serveLocally({}, async (request) => {
    const query = new URL(request.url).searchParams;
    if (request.method === "GET") {
      const isMine = query.get("hub.verify_token") === "mine" && query.get("hub.mode") === "subscribe";
      return isMine ? new Response(query.get("hub.challenge")) : new Response(null, { status: 403 });
    }
    posted.push({ text: await request.text(), signature: request.headers.get("x-hub-signature-256") ?? "" });
    return new Response();
  });
  await using _ = { [Symbol.asyncDispose]: () => server.close() };
  const apps = `/v21.0/${stage.accountId}/subscribed_apps`;
  const override_callback_uri = `http://${server.address}/hook`;

  const refused = await client.ask("POST", apps, { override_callback_uri, verify_token: "another" });
  assert.deepEqual([refused.status, refused.body.error.code], [400, 100]);
  const { body } = await client.ask("POST", apps, { override_callback_uri, verify_token: "mine" });
  assert.ok(body.success && body.secret);
  // Many applications subscribe at each start.
  const again = await client.ask("POST", apps, { override_callback_uri, verify_token: "mine" });
  assert.deepEqual(again.body, { success: true });
  const { data } = (await client.ask("GET", apps)).body;
  assert.deepEqual(data.map((app: Json) => app.override_callback_uri), [override_callback_uri]);

  await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "¿qué?" });
  await stage.event({ sessionId, number: LINE }, ({ event }) => event === "message.received");
  await until(() => Promise.resolve(posted.length > 0), "the message to be posted");
  const [{ text, signature }] = posted as [{ text: string; signature: string }];
  assert.equal(signature, `sha256=${createHmac("sha256", body.secret).update(text).digest("hex")}`);
  assert.equal(JSON.parse(text).entry[0].changes[0].value.messages[0].text.body, "¿qué?");

  assert.deepEqual((await client.ask("DELETE", apps)).body, { success: true });
  assert.deepEqual((await client.ask("GET", apps)).body, { data: [] });
});
