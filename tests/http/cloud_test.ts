/** `/cloud`: what each endpoint answers, field by field, and each refusal with its cause, code and status. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { lineKeys } from "../../src/line/rows.ts";
import { Change } from "../../src/store/kv.ts";
import { type ApiWorld, type CallOptions, withApi } from "../support/api_world.ts";
import { settle } from "../support/runtime.ts";

const PERSON = "34600111222";
const ID = expect(/^msg_[0-9a-z]{26}$/);
/** The user id of a person whose number is hidden. */
const HIDDEN = "ZZ.123456789012345";
const DIGITS = expect(/^\d{16,}$/);

interface Place {
  world: ApiWorld;
  session: string;
  /** The line's digits. */
  phone: string;
  account: string;
}

type Ask = [method: string, path: string, options?: CallOptions];

function expect(pattern: RegExp): { pattern: RegExp } {
  return { pattern };
}

/** Fails unless the value is the expected one, with all fields and no other. */
function assertShaped(got: Json, expected: Json, what: string): void {
  if (expected?.pattern instanceof RegExp) return assert.match(String(got), expected.pattern, what);
  if (typeof expected !== "object" || expected === null) return assert.deepEqual(got, expected, what);
  assert.deepEqual(Object.keys(got ?? {}).sort(), Object.keys(expected).sort(), `${what}: ${JSON.stringify(got)}`);
  for (const name of Object.keys(expected)) assertShaped(got[name], expected[name], `${what}.${name}`);
}

async function ask(world: ApiWorld, [method, path, options]: Ask) {
  const response = await world.call(method, `/cloud${path}`, options);
  assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  assert.equal(response.headers.get("content-type"), "application/json");
  return { status: response.status, body: await response.json() as Json, headers: response.headers };
}

async function withLine(
  run: (place: Place) => Promise<void>,
  options: Parameters<typeof withApi>[1] = {},
): Promise<void> {
  await withApi(async (world) => {
    const session = await world.linkedSession();
    const { phone } = await world.services.lines.get(world.account.id, session);
    await run({ world, session, phone: phone!, account: world.account.id });
  }, options);
}

const base = { messaging_product: "whatsapp", to: PERSON };
const text = { ...base, type: "text", text: { body: "hello" } };
const sent = {
  messaging_product: "whatsapp",
  contacts: [{ input: PERSON, wa_id: PERSON, user_id: `ES.${PERSON}` }],
  messages: [{ id: ID, message_status: "accepted" }],
};
const phoneNumber = (phone: string) => ({
  id: phone,
  display_phone_number: `+${phone}`,
  verified_name: "Support line",
  quality_rating: "UNKNOWN",
  platform_type: "CLOUD_API",
  throughput: { level: "STANDARD" },
  code_verification_status: "VERIFIED",
  name_status: "APPROVED",
  status: "CONNECTED",
  account_mode: "LIVE",
  is_official_business_account: false,
});
const template = {
  name: "hi",
  language: "en",
  category: "MARKETING",
  components: [{ type: "BODY", text: "Hello {{1}}" }, { type: "FOOTER", text: "Acme" }],
};
const shownTemplate = { id: DIGITS, status: "APPROVED", parameter_format: "POSITIONAL", ...template };

function form(fields: Record<string, string | Blob>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return form;
}

/** One after another on one world: what a row asks, and the whole answer. */
const ANSWERS: readonly [name: string, ask: (place: Place) => Ask, answer: (place: Place) => Json][] = [
  ["a number, by its digits", ({ phone }) => ["GET", `/v21.0/${phone}`], ({ phone }) => phoneNumber(phone)],
  [
    "a number, by its session, without a version",
    ({ session }) => ["GET", `/${session}`],
    ({ phone }) => phoneNumber(phone),
  ],
  [
    "some fields of it, in any form",
    ({ phone }) => ["GET", `/v99.0/${phone}?fields=verified_name,throughput{level},unheard_of`],
    ({ phone }) => ({ id: phone, verified_name: "Support line", throughput: { level: "STANDARD" } }),
  ],
  ["the numbers of an account", ({ account }) => ["GET", `/v21.0/${account}/phone_numbers`], ({ phone }) => ({
    data: [phoneNumber(phone)],
  })],
  ["the same by a number of it", ({ phone }) => ["GET", `/v21.0/${phone}/phone_numbers?fields=id`], ({ phone }) => ({
    data: [{ id: phone }],
  })],
  ["the account", ({ account }) => ["GET", `/v21.0/${account}?fields=name`], ({ account }) => ({
    id: account,
    name: "acme",
  })],
  ["a registration", ({ phone }) => ["POST", `/v21.0/${phone}/register`, { json: { pin: "123456" } }], () => ({
    success: true,
  })],
  ["its end", ({ phone }) => ["POST", `/v21.0/${phone}/deregister`], () => ({ success: true })],
  ["a text", ({ phone }) => ["POST", `/v21.0/${phone}/messages`, { json: text }], () => sent],
  ["the key as bearer", ({ phone, world }) => ["POST", `/v21.0/${phone}/messages`, {
    key: null,
    json: text,
    headers: { authorization: `Bearer ${world.apiKey}` },
  }], () => sent],
  ["the key in the query", ({ phone, world }) => [
    "POST",
    `/v21.0/${phone}/messages?access_token=${world.apiKey}`,
    { key: null, json: text },
  ], () => sent],
  ["a recipient as people write it", ({ phone }) => ["POST", `/v21.0/${phone}/messages`, {
    json: { ...text, to: "+34 600-111-222" },
  }], () => ({ ...sent, contacts: [{ input: "+34 600-111-222", wa_id: PERSON, user_id: `ES.${PERSON}` }] })],
  ["a recipient as a number", ({ phone }) => ["POST", `/v21.0/${phone}/messages`, {
    json: { ...text, to: Number(PERSON) },
  }], () => sent],
  ["a recipient by user id", ({ phone }) => ["POST", `/v21.0/${phone}/messages`, {
    json: { ...text, to: null, recipient: `ES.${PERSON}` },
  }], () => ({ ...sent, contacts: [{ input: `ES.${PERSON}`, wa_id: PERSON, user_id: `ES.${PERSON}` }] })],
  ["one whose number is hidden", ({ phone }) => ["POST", `/v21.0/${phone}/messages`, {
    json: { ...text, to: null, recipient: HIDDEN },
  }], () => ({ ...sent, contacts: [{ input: HIDDEN, wa_id: "123456789012345@lid", user_id: HIDDEN }] })],
  ["fields that change nothing, and null", ({ phone }) => ["POST", `/v21.0/${phone}/messages`, {
    json: { ...text, recipient_type: "individual", context: null, biz_opaque_callback_data: "7", preview: null },
  }], () => sent],
  ["structures as texts", ({ phone }) => ["POST", `/v21.0/${phone}/messages`, {
    json: { ...text, text: JSON.stringify({ body: "hello" }) },
  }], () => sent],
  ["a body as a form", ({ phone }) => ["POST", `/v21.0/${phone}/messages`, {
    body: new URLSearchParams({ ...base, type: "text", text: JSON.stringify({ body: "hello" }) }),
  }], () => sent],
  ["a new template", ({ account }) => ["POST", `/v21.0/${account}/message_templates`, { json: template }], () => ({
    id: DIGITS,
    status: "APPROVED",
    category: "MARKETING",
  })],
  ["the templates, and their number", ({ account }) => [
    "GET",
    `/v21.0/${account}/message_templates?name=hi&limit=1&summary=total_count`,
  ], () => ({
    data: [shownTemplate],
    paging: { cursors: { before: DIGITS, after: DIGITS } },
    summary: { total_count: 1 },
  })],
  ["templates of another category", ({ account }) => [
    "GET",
    `/v21.0/${account}/message_templates?category=UTILITY`,
  ], () => ({ data: [] })],
  ["a message from it", ({ phone }) => ["POST", `/v21.0/${phone}/messages`, {
    json: {
      ...base,
      type: "template",
      template: {
        name: "hi",
        language: { code: "en" },
        components: [{ type: "BODY", parameters: [{ type: "text", text: "Ana" }] }],
      },
    },
  }], () => sent],
  ["its end", ({ account }) => ["DELETE", `/v21.0/${account}/message_templates?name=hi`], () => ({ success: true })],
  ["an upload", ({ phone }) => ["POST", `/v21.0/${phone}/media`, {
    body: form({ messaging_product: "whatsapp", type: "text/plain", file: new File(["hello"], "a.txt") }),
  }], () => ({ id: DIGITS })],
  ["the profile", ({ phone }) => ["GET", `/v21.0/${phone}/whatsapp_business_profile`], () => ({
    data: [{ messaging_product: "whatsapp", about: "", vertical: "UNDEFINED" }],
  })],
  ["a block by user id", ({ phone }) => ["POST", `/v21.0/${phone}/block_users`, {
    json: { messaging_product: "whatsapp", block_users: [{ user_id: `ES.${PERSON}` }] },
  }], () => ({
    messaging_product: "whatsapp",
    block_users: { added_users: [{ input: `ES.${PERSON}`, wa_id: PERSON, user_id: `ES.${PERSON}` }] },
  })],
  ["the subscribed applications", ({ account }) => ["GET", `/v21.0/${account}/subscribed_apps`], () => ({ data: [] })],
  [
    "a subscription without an address",
    ({ account }) => ["POST", `/v21.0/${account}/subscribed_apps`, { json: {} }],
    () => ({
      success: true,
    }),
  ],
  ["whom it blocks", ({ phone }) => ["GET", `/v21.0/${phone}/block_users`], () => ({
    data: [{ messaging_product: "whatsapp", wa_id: PERSON, user_id: `ES.${PERSON}` }],
  })],
  ["the key", ({ world }) => ["GET", `/debug_token?input_token=${world.apiKey}`], ({ account }) => ({
    data: {
      app_id: account,
      application: "acme",
      type: "SYSTEM_USER",
      is_valid: true,
      expires_at: 0,
      data_access_expires_at: 0,
      user_id: account,
      scopes: ["whatsapp_business_messaging", "whatsapp_business_management"],
    },
  })],
  ["another key", () => ["GET", "/v21.0/debug_token?input_token=nonsense"], () => ({
    data: { is_valid: false, scopes: [], error: { code: 190, message: "Invalid OAuth access token" } },
  })],
];

Deno.test("each endpoint answers with the official fields", async (t) => {
  await withLine(async (place) => {
    for (const [name, asked, answer] of ANSWERS) {
      await t.step(name, async () => {
        const { status, body } = await ask(place.world, asked(place));
        assert.equal(status, 200, JSON.stringify(body));
        assertShaped(body, answer(place), name);
      });
    }
  });
});

const messages = ({ phone }: Place) => `/v21.0/${phone}/messages`;
const post = (json: unknown) => (place: Place): Ask => ["POST", messages(place), { json }];
const of = (type: string, part: unknown) => post({ ...base, type, [type]: part });
const button = (id: string) => ({ type: "reply", reply: { id, title: "Yes" } });

const REFUSALS: readonly [name: string, status: number, code: number, ask: (place: Place) => Ask][] = [
  ["no key", 401, 190, (place) => ["POST", messages(place), { json: text, key: null }]],
  ["an unknown key", 401, 190, (place) => ["POST", messages(place), { json: text, key: "nonsense" }]],
  ["an unknown number", 404, 100, () => ["POST", "/v21.0/4999999999999/messages", { json: text }]],
  ["an unknown account", 404, 100, () => ["GET", "/v21.0/123/phone_numbers"]],
  ["an unknown edge", 404, 100, ({ phone }) => ["POST", `/v21.0/${phone}/nothing`, { json: {} }]],
  ["another method", 404, 100, (place) => ["GET", messages(place)]],
  ["nothing at all", 404, 100, () => ["GET", "/v21.0"]],
  ["no JSON", 400, 100, (place) => ["POST", messages(place), { body: "{" }]],
  ["a list", 400, 100, post([text])],
  ["a body that is too large", 400, 100, post({ ...text, text: { body: "x".repeat(1_100_000) } })],
  ["another product", 400, 100, post({ ...text, messaging_product: "sms" })],
  ["no recipient", 400, 100, post({ ...text, to: null })],
  ["no number", 400, 100, post({ ...text, to: "12" })],
  ["no user id", 400, 100, post({ ...text, to: null, recipient: "nobody" })],
  ["an empty text", 400, 100, of("text", { body: "" })],
  ["a type without its member", 400, 100, post({ ...base, type: "image" })],
  ["a member that would change the message", 400, 100, post({ ...text, recipient_identity_key_hash: "x" })],
  ["callback data that is too long", 400, 100, post({ ...text, biz_opaque_callback_data: "x".repeat(513) })],
  ["an unknown message to reply to", 404, 100, post({ ...text, context: { message_id: "wamid.none" } })],
  ["an unknown message to react to", 404, 100, of("reaction", { message_id: "wamid.none", emoji: "👍" })],
  ["no emoji", 400, 100, of("reaction", { message_id: "wamid.none", emoji: "no" })],
  ["an unknown type", 400, 131051, of("hologram", {})],
  ["an interactive type that is not supported", 400, 131051, of("interactive", { type: "flow", action: {} })],
  [
    "buttons with one id",
    400,
    100,
    of("interactive", {
      type: "button",
      body: { text: "?" },
      action: { buttons: [button("a"), button("a")] },
    }),
  ],
  [
    "a header that is a file",
    400,
    100,
    of("interactive", {
      type: "button",
      header: { type: "image", image: { id: "1" } },
      body: { text: "?" },
      action: { buttons: [button("a")] },
    }),
  ],
  ["no place", 400, 100, of("location", { latitude: 91, longitude: 0 })],
  ["no cards", 400, 100, of("contacts", [])],
  ["a card without a name", 400, 100, of("contacts", [{ phones: [] }])],
  ["unknown media", 400, 131053, of("image", { id: "12345678901234567890123456789" })],
  ["neither id nor link", 400, 100, of("image", {})],
  ["an unknown template", 404, 132001, of("template", { name: "none", language: { code: "en" } })],
  ["a template of no possible name", 404, 132001, of("template", { name: "../x", language: { code: "en" } })],
  ["a template without its parameters", 400, 100, of("template", { name: "due", language: { code: "en" } })],
  [
    "parameters that are too many",
    400,
    100,
    of("template", {
      name: "due",
      language: { code: "en" },
      components: [{ type: "body", parameters: [{ text: "a" }, { text: "b" }] }],
    }),
  ],
  [
    "a picture for a template",
    400,
    100,
    of("template", {
      name: "due",
      language: { code: "en" },
      components: [{ type: "header", parameters: [{ type: "image", image: { id: "1" } }] }],
    }),
  ],
  ["an unknown message to read", 404, 100, post({ ...base, status: "read", message_id: "wamid.none" })],
  ["another status", 400, 100, post({ ...base, status: "delivered", message_id: "wamid.none" })],
  ["a template that exists", 409, 131000, ({ account }) => ["POST", `/v21.0/${account}/message_templates`, {
    json: { ...template, name: "due" },
  }]],
  ["a template with a picture", 400, 100, ({ account }) => ["POST", `/v21.0/${account}/message_templates`, {
    json: { ...template, components: [{ type: "HEADER", format: "IMAGE" }] },
  }]],
  ["a template of no category", 400, 100, ({ account }) => ["POST", `/v21.0/${account}/message_templates`, {
    json: { ...template, category: "SPAM" },
  }]],
  ["the end of an unknown template", 404, 100, ({ account }) => [
    "DELETE",
    `/v21.0/${account}/message_templates?name=none`,
  ]],
  [
    "a profile that a number cannot have",
    400,
    100,
    ({ phone }) => ["POST", `/v21.0/${phone}/whatsapp_business_profile`, {
      json: { messaging_product: "whatsapp", email: "a@a.example" },
    }],
  ],
  ["nobody to block", 400, 100, ({ phone }) => ["POST", `/v21.0/${phone}/block_users`, { json: {} }]],
  [
    "an upload without a file",
    400,
    100,
    ({ phone }) => ["POST", `/v21.0/${phone}/media`, { body: form({ type: "a/b" }) }],
  ],
  ["an upload that is no form", 400, 131053, ({ phone }) => ["POST", `/v21.0/${phone}/media`, { json: {} }]],
  ["an Idempotency-Key that is used again", 400, 100, (place) => ["POST", messages(place), {
    json: { ...text, text: { body: "another" } },
    headers: { "idempotency-key": "one" },
  }]],
];

Deno.test("each cause is refused with its code, and nothing is sent", async (t) => {
  await withLine(async (place) => {
    const { world } = place;
    await world.call("POST", "/v1/templates", { json: { name: "due", text: "Hello {{1}}" } });
    await ask(world, ["POST", messages(place), { json: text, headers: { "idempotency-key": "one" } }]);
    for (const [name, status, code, asked] of REFUSALS) {
      await t.step(name, async () => void await assertRefused(world, asked(place), { status, code }));
    }
    const { pagination } = await (await world.call("GET", "/v1/messages/history")).json();
    assert.equal(pagination.total, 1);
  });
});

async function assertRefused(world: ApiWorld, asked: Ask, expected: { status: number; code: number }) {
  const { status, body, headers } = await ask(world, asked);
  assert.deepEqual({ status, code: body.error?.code }, expected, JSON.stringify(body));
  const { message, type, error_data, fbtrace_id } = body.error;
  assert.ok(message.startsWith(`(#${expected.code}) `) && type === "OAuthException", message);
  assert.equal(error_data.messaging_product, "whatsapp");
  assert.ok(error_data.details.length > 10);
  assert.equal(fbtrace_id, headers.get("x-request-id"));
  return headers;
}

Deno.test("keys, opt-outs, quotas, limits and lines refuse as they do in the API", async (t) => {
  await withLine(async (place) => {
    const { world, session } = place;
    await t.step("a key without the scope", async () => {
      const made = await world.call("POST", "/v1/account/keys", { json: { name: "reads", scopes: ["read"] } });
      const { data: { key } } = await made.json();
      await assertRefused(world, ["POST", messages(place), { json: text, key }], { status: 403, code: 10 });
      const { body } = await ask(world, ["GET", `/debug_token?input_token=${key}`]);
      assert.deepEqual([body.data.is_valid, body.data.scopes], [true, []]);
    });
    await t.step("a key that may propose only", async () => {
      const made = await world.call("POST", "/v1/account/keys", { json: { name: "proposes", scopes: ["propose"] } });
      const { data: { key } } = await made.json();
      const { body } = await ask(world, ["POST", messages(place), { json: text, key }]);
      assert.equal((await world.message(body.messages[0].id))?.proposal?.by, "proposes");
    });
    await t.step("a recipient who opted out", async () => {
      await world.call("PUT", `/v1/optouts/${PERSON}`, { json: {} });
      await assertRefused(world, ["POST", messages(place), { json: text }], { status: 400, code: 131000 });
      await world.call("DELETE", `/v1/optouts/${PERSON}`);
    });
    await t.step("an offline line takes messages, one that is logged out does not", async () => {
      world.network.of(session).ends("lost");
      await settle();
      assert.equal((await ask(world, ["POST", messages(place), { json: text }])).status, 200);
      await world.services.lines.want(place.account, session, "logged_out");
      await assertRefused(world, ["POST", messages(place), { json: text }], { status: 409, code: 131000 });
    });
  });

  await t.step("a used-up quota", () =>
    withLine(async (place) => {
      await ask(place.world, ["POST", messages(place), { json: text }]);
      await assertRefused(place.world, ["POST", messages(place), { json: text }], { status: 429, code: 130429 });
    }, { plan: { daily: 1 } }));

  await t.step("too many requests, whatever they ask", () =>
    withLine(async ({ world, phone }) => {
      for (let i = 0; i < 3; i++) await ask(world, ["GET", `/v21.0/${phone}`]);
      const headers = await assertRefused(world, ["GET", `/v21.0/${phone}`], { status: 429, code: 130429 });
      assert.match(headers.get("retry-after") ?? "", /^\d+$/);
    }, { plan: { requestsPerMinute: 3 } }));
});

Deno.test("a repeated request with an Idempotency-Key is answered with the first message", () =>
  withLine(async (place) => {
    const repeated: Ask = ["POST", messages(place), { json: text, headers: { "idempotency-key": "one" } }];
    const [one, two] = [await ask(place.world, repeated), await ask(place.world, repeated)];
    assert.deepEqual(two.body, one.body);
  }));

Deno.test("what is given back with statuses and answers is kept with the message", () =>
  withLine(async (place) => {
    const interactive = {
      type: "list",
      body: { text: "?" },
      action: { sections: [{ rows: [{ id: "a", title: "A" }] }] },
    };
    const json = { ...base, type: "interactive", interactive, biz_opaque_callback_data: "order 7" };
    const { body } = await ask(place.world, ["POST", messages(place), { json }]);
    const message = await place.world.message(body.messages[0].id);
    assert.deepEqual(message?.manner?.cloud, { callbackData: "order 7", interactive: "list" });
  }));

Deno.test("refusals of bad keys are delayed alike on every interface", () =>
  withApi(async (world) => {
    for (const [i, path] of ["/v1/sessions", "/cloud/v21.0/1", "/mcp"].entries()) {
      const bad = () => world.call("GET", path, { key: "nonsense", from: `192.0.2.${i}` });
      for (let free = 0; free < 50; free++) assert.equal((await bad()).status, 401);
      let isDone = false;
      const held = bad().then(() => void (isDone = true));
      await settle();
      assert.equal(isDone, false, path);
      await world.runtime.clock.advance(500);
      await held;
      await world.runtime.clock.advance(1_000);
    }
  }));

Deno.test("a key that another process regenerates is refused at once, for sends and for reads", () =>
  withLine(async (place) => {
    const { world } = place;
    const send: Ask = ["POST", messages(place), { json: text }];
    for (let i = 0; i < 2; i++) assert.equal((await ask(world, send)).status, 200);
    await world.otherProcess().rotateKey(world.account.id);
    await assertRefused(world, send, { status: 401, code: 190 });
    await assertRefused(world, ["POST", messages(place), { json: { ...text, to: "12" } }], { status: 401, code: 190 });
    const read = { ...base, status: "read", message_id: "wamid.none" };
    await assertRefused(world, ["POST", messages(place), { json: read }], { status: 401, code: 190 });
    await assertRefused(world, ["GET", `/v21.0/${place.phone}`], { status: 401, code: 190 });
  }));

Deno.test("a number that a line no longer has sends nothing, however well it is remembered", () =>
  withLine(async (place) => {
    const { world, session } = place;
    const send: Ask = ["POST", messages(place), { json: text }];
    for (let i = 0; i < 2; i++) assert.equal((await ask(world, send)).status, 200);
    // In another process, the owner of another phone scans the line's new code.
    const { key, value } = await world.kv.get(lineKeys.line(session));
    await world.kv.commit(new Change().set(key, { ...value!, phone: "34600000002" }));
    await assertRefused(world, send, { status: 404, code: 100 });
    assert.equal((await ask(world, ["POST", "/v21.0/34600000002/messages", { json: text }])).status, 200);
  }));
