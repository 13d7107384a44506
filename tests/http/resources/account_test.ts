import assert from "node:assert/strict";
import { expectAnswer, problem, wrong } from "../../support/api_table.ts";
import { type ApiWorld, type CallOptions, withApi } from "../../support/api_world.ts";

const account = (world: ApiWorld, options: CallOptions = {}) => world.call("GET", "/v1/account", options);
const restrict = (world: ApiWorld, json: unknown, options: CallOptions = {}) =>
  world.call("PUT", "/panel/account", { json, ...options });

Deno.test("what is used and left of a quota goes with the messages and the day", () =>
  withApi(async (world) => {
    const sessionId = await world.linkedSession();
    const quota = async () => {
      const { data: { used, remaining } } = await (await account(world)).json();
      return [used, remaining];
    };
    assert.deepEqual(await quota(), [{ daily: 0, monthly: 0 }, { daily: 3, monthly: 100 }]);
    for (const text of ["one", "two"]) {
      await world.call("POST", "/v1/messages/send/text", { json: { sessionId, to: "34600111222", text } });
    }
    assert.deepEqual(await quota(), [{ daily: 2, monthly: 2 }, { daily: 1, monthly: 98 }]);
    await world.runtime.clock.advance(24 * 60 * 60 * 1000);
    assert.equal((await quota())[0].daily, 0);
  }, { plan: { daily: 3, monthly: 100 } }));

Deno.test("a key is regenerated in the panel, and the old one stops working at once", () =>
  withApi(async (world) => {
    const { data: { apiKey } } = JSON.parse(
      await expectAnswer(await world.call("POST", "/panel/account/regenerate-key"), {
        status: 200,
        contains: [/^\{"data":\{"apiKey":"pk_[\w-]{43}"\}\}$/],
        lacks: [world.apiKey],
      }),
    );
    await expectAnswer(await account(world), { status: 401, contains: problem("api_key_invalid") });
    await expectAnswer(await account(world, { key: apiKey }), { status: 200, lacks: [apiKey] });
  }));

Deno.test("of many regenerations at once one is answered a key, which works, and the others are refused", () =>
  withApi(async (world) => {
    const headers = { "idempotency-key": "once" };
    const answers = await Promise.all(Array.from({ length: 20 }, async (_, i) => {
      const response = await world.call("POST", "/panel/account/regenerate-key", i % 2 ? {} : { headers });
      return { status: response.status, body: await response.json() };
    }));
    const regenerated = answers.filter(({ status }) => status === 200);
    assert.equal(regenerated.length, 1);
    for (const { status, body } of answers) {
      if (status !== 200) assert.deepEqual([status, body.code], [401, "api_key_invalid"]);
    }
    const key = regenerated[0]!.body.data.apiKey;
    await expectAnswer(await account(world, { key }), { status: 200 });
    const again = await world.call("POST", "/panel/account/regenerate-key", { key, headers });
    await expectAnswer(again, { status: 200, lacks: [key] });
  }));

Deno.test("a key is bound in the panel, and freed again", () =>
  withApi(async (world) => {
    const from = "198.51.100.7";
    const origin = { origin: "https://shop.example.com" };
    const here = { from, headers: origin };
    await expectAnswer(await restrict(world, { allowedIps: ["198.51.100.0/24"] }, here), {
      status: 200,
      contains: ['"allowedIps":["198.51.100.0/24"],"allowedDomains":[]'],
    });
    await expectAnswer(await account(world, { from: "192.0.2.1" }), {
      status: 403,
      contains: problem("ip_not_allowed"),
    });
    await expectAnswer(await restrict(world, { allowedDomains: ["Example.com", "example.com"] }, here), {
      status: 200,
      contains: ['"allowedIps":["198.51.100.0/24"],"allowedDomains":["example.com"]'],
    });
    await expectAnswer(await account(world, { from }), { status: 403, contains: problem("domain_not_allowed") });
    await expectAnswer(await restrict(world, { allowedIps: [], allowedDomains: [] }, here), { status: 200 });
    await expectAnswer(await account(world), { status: 200 });
  }));

Deno.test("nobody locks himself out, and what is refused changes nothing", () =>
  withApi(async (world) => {
    const here = { from: "198.51.100.7", headers: { origin: "https://gateway.example.com" } };
    const refused: [unknown, string][] = [
      [{ allowedIps: ["192.0.2.0/24"] }, "allowedIps"],
      [{ allowedDomains: ["example.org"] }, "allowedDomains"],
      [{ allowedIps: ["198.51.100.7", "10.0.0.0/33"] }, "allowedIps.1"],
      [{ allowedDomains: ["https://example.com"] }, "allowedDomains.0"],
      [{ allowedIps: "198.51.100.7" }, "allowedIps"],
      [{ allowedIps: [], allowedHosts: ["example.org"] }, "allowedHosts"],
      [{ allowedIps: Array.from({ length: 101 }, () => "198.51.100.7") }, "allowedIps"],
    ];
    for (const [json, path] of refused) {
      await expectAnswer(await restrict(world, json, here), { status: 400, contains: wrong(path) });
    }
    await expectAnswer(await account(world), { status: 200, contains: ['"allowedIps":[],"allowedDomains":[]'] });
  }));

Deno.test("managing a key needs it, and no page of another origin reads the answer", () =>
  withApi(async (world) => {
    for (const [method, path] of [["PUT", "/panel/account"], ["POST", "/panel/account/regenerate-key"]] as const) {
      const answer = await world.call(method, path, { key: null, json: {} });
      await expectAnswer(answer, { status: 401, contains: problem("api_key_missing") });
      const headers = { origin: "https://evil.example.net", "access-control-request-method": method };
      const preflight = await world.call("OPTIONS", path, { key: null, headers });
      await expectAnswer(preflight, { status: 405, headers: { "access-control-allow-origin": null } });
    }
    await expectAnswer(await account(world), { status: 200 });
  }));
