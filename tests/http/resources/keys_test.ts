/** Further keys of an account: what each may do, from where, and who may make them. */
import assert from "node:assert/strict";
import { expectAnswer, problem } from "../../support/api_table.ts";
import { type ApiWorld, withApi } from "../../support/api_world.ts";

const KEYS = "/v1/account/keys";
const SEND = ["POST", "/v1/messages/send/text", { json: { to: "34600111222", text: "hello" } }] as const;

/** Makes a key and resolves to it. */
async function make(world: ApiWorld, json: object, key?: string): Promise<{ id: string; key: string }> {
  const response = await world.call("POST", KEYS, { json: { name: "a key", ...json }, ...(key ? { key } : {}) });
  assert.equal(response.status, 201, await response.clone().text());
  return (await response.json()).data;
}

Deno.test("a key is shown once, listed without itself, and has a name, scopes, limits and its last use", () =>
  withApi(async (world) => {
    const made = await make(world, { name: " shop ", scopes: ["read", "send", "read"], allowedIps: ["10.0.0.1"] });
    assert.match(made.key, /^pk_/);
    const { key, ...shown } = made;
    assert.deepEqual(shown, {
      id: made.id,
      name: "shop",
      scopes: ["send", "read"],
      allowedIps: ["10.0.0.1"],
      allowedDomains: [],
      createdAt: new Date(world.runtime.clock.now()).toISOString(),
      lastUsedAt: null,
    });
    const list = async () => (await (await world.call("GET", KEYS)).json()).data;
    assert.deepEqual(await list(), [shown]);
    await expectAnswer(await world.call("GET", "/v1/sessions", { key, from: "10.0.0.1" }), { status: 200 });
    assert.deepEqual(await list(), [{ ...shown, lastUsedAt: shown.createdAt }]);
    await expectAnswer(await world.call("GET", "/v1/sessions", { key, from: "10.0.0.2" }), {
      status: 403,
      contains: problem("ip_not_allowed"),
    });
  }));

Deno.test("each scope allows what it names and nothing else", () =>
  withApi(async (world) => {
    await world.linkedSession();
    const allowed = { send: 202, read: 200, manage: 201 };
    for (const scope of ["send", "read", "manage"] as const) {
      const { key } = await make(world, { scopes: [scope] });
      const answers = {
        send: await world.call(SEND[0], SEND[1], { ...SEND[2], key }),
        read: await world.call("GET", "/v1/sessions", { key }),
        manage: await world.call("POST", KEYS, { json: { name: "x", scopes: ["manage"] }, key }),
      };
      for (const name of ["send", "read", "manage"] as const) {
        if (name === scope) await expectAnswer(answers[name], { status: allowed[name] });
        else await expectAnswer(answers[name], { status: 403, contains: problem("scope_missing") });
      }
    }
    await expectAnswer(await world.call(...SEND), { status: 202 });
  }));

Deno.test("only a key with the scope manage lists the keys, and needs no other for that", () =>
  withApi(async (world) => {
    for (const [scope, answer] of [["manage", { status: 200 }], ["read", { status: 403 }]] as const) {
      const { key } = await make(world, { scopes: [scope] });
      await expectAnswer(await world.call("GET", KEYS, { key }), answer);
    }
  }));

Deno.test("a key makes no key that may do more than itself", () =>
  withApi(async (world) => {
    const { key } = await make(world, { scopes: ["manage"] });
    await expectAnswer(await world.call("POST", KEYS, { json: { name: "x", scopes: ["manage", "send"] }, key }), {
      status: 403,
      contains: problem("scope_missing"),
    });
  }));

Deno.test("the answer that has a new key in it is repeated only to a key that could have made it", () =>
  withApi(async (world) => {
    const headers = { "idempotency-key": "k-1" };
    const json = { name: "x", scopes: ["manage", "send"] };
    const made = await expectAnswer(await world.call("POST", KEYS, { json, headers }), { status: 201 });
    const refused = { status: 403, contains: problem("scope_missing"), lacks: ["pk_"] };
    const lesser = await make(world, { scopes: ["manage"] });
    await expectAnswer(await world.call("POST", KEYS, { json, headers, key: lesser.key }), refused);
    const ofPages = await make(world, { scopes: ["manage", "send"], allowedDomains: ["shop.example.com"] });
    const fromPage = { ...headers, origin: "https://shop.example.com" };
    await expectAnswer(await world.call("POST", KEYS, { json, headers: fromPage, key: ofPages.key }), refused);
    assert.equal(await expectAnswer(await world.call("POST", KEYS, { json, headers }), { status: 201 }), made);
  }));

Deno.test("a key that is bound to a domain manages no keys, whatever its Origin says, and all else that its scopes allow", () =>
  withApi(async (world) => {
    const { key, id } = await make(world, { scopes: ["manage", "read"], allowedDomains: ["shop.example.com"] });
    const headers = { origin: "https://shop.example.com" };
    const refused = { status: 403, contains: problem("scope_missing") };
    await expectAnswer(await world.call("GET", "/v1/sessions", { key, headers }), { status: 200 });
    const words = { json: { optOutWords: ["STOP"] }, key, headers };
    await expectAnswer(await world.call("PATCH", "/v1/account", words), { status: 200, contains: ['"STOP"'] });
    await expectAnswer(await world.call("GET", KEYS, { key, headers }), refused);
    await expectAnswer(await world.call("DELETE", `${KEYS}/${id}`, { key, headers }), refused);
    const json = { name: "x", scopes: ["manage"] };
    await expectAnswer(await world.call("POST", KEYS, { json, key, headers }), refused);
    await world.accounts.update(world.account.id, { allowedDomains: ["shop.example.com"] });
    await expectAnswer(await world.call("POST", KEYS, { json, headers }), refused);
  }));

Deno.test("a deleted key stops working at once, and is unknown to another account from the start", () =>
  withApi(async (world) => {
    const { key, id } = await make(world, { scopes: ["read"] });
    const { apiKey } = await world.accounts.create({ name: "other", plan: "tested" });
    const unknown = { status: 404, contains: problem("not_found") };
    await expectAnswer(await world.call("DELETE", `${KEYS}/${id}`, { key: apiKey }), unknown);
    await expectAnswer(await world.call("GET", "/v1/sessions", { key }), { status: 200 });
    await expectAnswer(await world.call("DELETE", `${KEYS}/${id}`), { status: 200, lacks: [key] });
    await expectAnswer(await world.call("GET", "/v1/sessions", { key }), {
      status: 401,
      contains: problem("api_key_invalid"),
    });
    await expectAnswer(await world.call("DELETE", `${KEYS}/${id}`), unknown);
  }));

Deno.test("what is wrong with a key is said, and nothing is made", () =>
  withApi(async (world) => {
    const wrong = [
      { scopes: ["send"] },
      { name: "x", scopes: [] },
      { name: "x", scopes: ["everything"] },
      { name: "x", scopes: ["send"], allowedIps: ["nowhere"] },
      { name: "x", scopes: ["send"], allowedDomains: ["https://x"] },
      { name: "x", scopes: ["send"], more: 1 },
    ];
    for (const json of wrong) {
      const answer = { status: 400, contains: problem("validation_failed") };
      await expectAnswer(await world.call("POST", KEYS, { json }), answer);
    }
    assert.deepEqual((await (await world.call("GET", KEYS)).json()).data, []);
  }));
