/** `/cloud`: what is sent in the shape of the official API is judged at the phone, refusals by their codes. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { onStage } from "../support/stage.ts";

const LINE = "4915200000043";
const ANA = "4917000000043";

onStage("messages in the official shape arrive at the phone", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const { sessionId } = await stage.linkLine(LINE);
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => new Response("a file"));
  await using _ = { [Symbol.asyncDispose]: () => server.shutdown() };

  async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(new URL(`/cloud${path}`, stage.gateway.baseUrl), {
      method,
      headers: { authorization: `Bearer ${stage.apiKey}`, ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() as Json };
  }
  const base = { messaging_product: "whatsapp", recipient_type: "individual", to: `+${ANA}` };
  const send = async (message: Json, phone = LINE, version = "/v21.0") => {
    const { status, body } = await ask("POST", `${version}/${phone}/messages`, { ...base, ...message });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(body.contacts, [{ input: `+${ANA}`, wa_id: ANA }]);
    assert.equal(body.messages[0].message_status, "accepted");
    return body.messages[0].id as string;
  };

  // Members that are null count as left out.
  const first = await send({ type: "text", text: { body: "ñandú", preview_url: null }, context: null });
  const arrived = await stage.arrival(ANA, ({ text }) => text === "ñandú");
  await stage.status(first, "sent");
  await send({ type: "text", text: { body: "by session" } }, sessionId, "");
  await stage.arrival(ANA, ({ text }) => text === "by session");
  await send({ text: { body: "a reply" }, context: { message_id: first } });
  assert.equal((await stage.arrival(ANA, ({ text }) => text === "a reply")).quoted.id, arrived.id);
  const link = `http://127.0.0.1:${server.addr.port}/a.txt`;
  await send({ type: "document", document: { link, filename: "bill.txt", caption: "your bill" } });
  assert.equal((await stage.arrival(ANA, ({ caption }) => caption === "your bill")).filename, "bill.txt");
  await send({ type: "location", location: { latitude: "41.5", longitude: 2.25, name: "Shop" } });
  await stage.arrival(ANA, ({ location }) => location?.latitude === 41.5);
  // One client sends the cards as JSON in a text.
  const cards = [{ name: { formatted_name: "Bo" }, phones: [{ phone: "+34600111222" }], org: { company: "Acme" } }];
  await send({ type: "contacts", contacts: JSON.stringify(cards) });
  await stage.arrival(ANA, ({ type }) => type.startsWith("contact"));
  await send({ type: "reaction", reaction: { message_id: first, emoji: "👍" } });
  await stage.arrival(ANA, ({ reaction }) => reaction?.emoji === "👍");
  const buttons = [{ type: "reply", reply: { id: "y", title: "Yes" } }, {
    type: "reply",
    reply: { id: "n", title: "No" },
  }];
  await send({ type: "interactive", interactive: { type: "button", body: { text: "Tea?" }, action: { buttons } } });
  await stage.arrival(ANA, ({ text }) => text?.includes("Tea?") && text.includes("Yes"));
  const sections = [{ title: "All", rows: [{ id: "a", title: "Red" }, { id: "b", title: "Blue" }] }];
  await send({
    type: "interactive",
    interactive: { type: "list", body: { text: "Colour?" }, action: { button: "See", sections } },
  });
  await stage.arrival(ANA, ({ text }) => text?.includes("Blue"));
  await stage.api.call("POST", "/templates", { name: "due", text: "Hello {{1}}" });
  const components = [{ type: "body", parameters: [{ type: "text", text: "Ana" }] }];
  await send({ type: "template", template: { name: "due", language: { code: "en" }, components } });
  await stage.arrival(ANA, ({ text }) => text === "Hello Ana");

  await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "hi" });
  const { data } = await stage.event({ sessionId, number: LINE }, ({ event }) => event === "message.received");
  const read = { messaging_product: "whatsapp", status: "read", message_id: data.messageId };
  const answered = await ask("POST", `/v21.0/${LINE}/messages`, { ...read, typing_indicator: { type: "text" } });
  assert.deepEqual(answered, { status: 200, body: { success: true } });

  assert.equal((await ask("GET", `/v21.0/${LINE}`)).body.display_phone_number, `+${LINE}`);
  assert.equal((await ask("GET", `/v9.0/${stage.accountId}/phone_numbers`)).body.data[0].id, LINE);
  assert.deepEqual((await ask("POST", `/${LINE}/register`, {})).body, { success: true });
  const byQuery = await fetch(new URL(`/cloud/${LINE}?access_token=${stage.apiKey}`, stage.gateway.baseUrl));
  assert.equal((await byQuery.json()).id, LINE);

  const { key } = (await stage.api.call("POST", "/account/keys", { name: "reads", scopes: ["read"] })).data;
  const text = { ...base, type: "text", text: { body: "never" } };
  const path = `/v21.0/${LINE}/messages`;
  const template = { name: "none", language: { code: "en" } };
  for (
    const [status, code, body, headers, at] of [
      [401, 190, text, { authorization: "Bearer nonsense" }],
      [401, 190, text, { authorization: "" }],
      [403, 10, text, { authorization: `Bearer ${key}` }],
      [404, 100, text, {}, "/v21.0/4999999999999/messages"],
      [404, 100, text, {}, `/v21.0/${LINE}/nothing`],
      [400, 100, "{"],
      [400, 100, { ...text, messaging_product: "sms" }],
      [400, 100, { ...text, to: "12" }],
      [400, 100, { ...text, text: { body: "" } }],
      [400, 100, { ...text, recipient_identity_key_hash: "x" }],
      [400, 131051, { ...base, type: "hologram", hologram: {} }],
      [400, 131053, { ...base, type: "image", image: { id: "123" } }],
      [404, 132001, { ...base, type: "template", template }],
    ] as [number, number, unknown, Record<string, string>?, string?][]
  ) {
    const refused = await ask("POST", at ?? path, body, headers);
    assert.deepEqual([refused.status, refused.body.error?.code], [status, code], JSON.stringify([body, refused.body]));
    assert.ok(refused.body.error.fbtrace_id && refused.body.error.error_data.details);
  }
  assert.ok(!(await stage.inbox(ANA)).some(({ text }) => text === "never"));
});
