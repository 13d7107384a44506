import assert from "node:assert/strict";
import { StoreError } from "../../../src/store/kv.ts";
import { NetworkRefusal, NetworkTimeout } from "../../../src/whatsapp/connection.ts";
import { expectAnswer, problem } from "../../support/api_table.ts";
import { type ApiWorld, withApi } from "../../support/api_world.ts";

const text = { to: "34600111222", text: "hi" };
const send = (world: ApiWorld, json: unknown = text) => world.call("POST", "/v1/messages/send/text", { json });

Deno.test("a key has its requests a minute, and is told", () =>
  withApi(async (world) => {
    for (const left of ["2", "1", "0"]) {
      await expectAnswer(await world.call("GET", "/v1/webhooks"), {
        status: 200,
        headers: {
          "ratelimit-limit": "3",
          "ratelimit-remaining": left,
          "ratelimit-reset": "60",
          "ratelimit-policy": '"minute";q=3;w=60',
          ratelimit: `"minute";r=${left};t=60`,
        },
      });
    }
    await world.runtime.clock.advance(20_500);
    const refused = { status: 429, contains: problem("rate_limited"), headers: { "retry-after": "40" } };
    await expectAnswer(await world.call("GET", "/v1/webhooks"), refused);
    await expectAnswer(await send(world), refused);
    await expectAnswer(await world.call("GET", "/healthz"), { status: 200, headers: { "ratelimit-limit": null } });
    const { apiKey: key } = await world.accounts.create({ name: "other", plan: "tested" });
    await expectAnswer(await world.call("GET", "/v1/webhooks", { key }), { status: 200 });
    await world.runtime.clock.advance(39_500);
    await expectAnswer(await world.call("GET", "/v1/webhooks"), {
      status: 200,
      headers: { "ratelimit-remaining": "2" },
    });
  }, { plan: { requestsPerMinute: 3 } }));

Deno.test("each key of an account has a minute of its own", () =>
  withApi(async (world) => {
    const made = await world.call("POST", "/v1/account/keys", { json: { name: "reader", scopes: ["read"] } });
    const { key } = (await made.json()).data;
    for (const left of ["1", "0"]) {
      const headers = { "ratelimit-remaining": left };
      await expectAnswer(await world.call("GET", "/v1/sessions", { key }), { status: 200, headers });
    }
    await expectAnswer(await world.call("GET", "/v1/sessions", { key }), { status: 429 });
    await expectAnswer(await world.call("GET", "/v1/sessions"), { status: 200 });
    await expectAnswer(await world.call("GET", "/v1/sessions"), { status: 429 });
  }, { plan: { requestsPerMinute: 2 } }));

Deno.test("requests for which a key lacks the scope count as any other", () =>
  withApi(async (world) => {
    const made = await world.call("POST", "/v1/account/keys", { json: { name: "sender", scopes: ["send"] } });
    const { key } = (await made.json()).data;
    const ask = () => world.call("GET", "/v1/sessions", { key });
    for (const left of ["1", "0"]) {
      const headers = { "ratelimit-remaining": left };
      await expectAnswer(await ask(), { status: 403, contains: problem("scope_missing"), headers });
    }
    await expectAnswer(await ask(), { status: 429, contains: problem("rate_limited") });
  }, { plan: { requestsPerMinute: 2 } }));

Deno.test("a plan without a limit says nothing of one", () =>
  withApi(async (world) => {
    await expectAnswer(await world.call("GET", "/v1/webhooks"), {
      status: 200,
      headers: { ratelimit: null, "ratelimit-limit": null, "x-quota-daily-remaining": null },
    });
  }));

Deno.test("what is left of a quota stands in the headers, and in the refusal", () =>
  withApi(async (world) => {
    await world.linkedSession();
    await expectAnswer(await send(world), {
      status: 202,
      headers: { "x-quota-daily-remaining": "2", "x-quota-monthly-remaining": "9" },
    });
    const messages = Array(3).fill(text);
    await expectAnswer(await world.call("POST", "/v1/messages/send/bulk", { json: { messages } }), {
      status: 429,
      contains: [...problem("quota_exceeded"), '"remaining":{"daily":2,"monthly":9}'],
      headers: { "retry-after": /^\d+$/, "x-quota-daily-remaining": "2", "x-quota-monthly-remaining": "9" },
    });
    await expectAnswer(await world.call("POST", "/v1/messages/send/bulk", { json: { messages: messages.slice(1) } }), {
      status: 202,
      headers: { "x-quota-daily-remaining": "0", "x-quota-monthly-remaining": "7" },
    });
    await expectAnswer(await send(world), { status: 429, contains: problem("quota_exceeded") });
    await expectAnswer(await world.call("GET", "/v1/messages/history"), { status: 200, contains: ['"total":3'] });
  }, { plan: { daily: 3, monthly: 10 } }));

Deno.test("quota that was given back can be used at once, also after a send was refused for want of it", () =>
  withApi(async (world) => {
    const json = { ...text, sessionId: await world.linkedSession() };
    await world.call("POST", `/v1/sessions/${json.sessionId}/disconnect`);
    for (const [method, path] of [["DELETE", ""], ["POST", "/revoke"]] as const) {
      const { messageId } = JSON.parse(await expectAnswer(await send(world, json), { status: 202 }));
      await expectAnswer(await send(world, json), { status: 429, contains: problem("quota_exceeded") });
      await expectAnswer(await world.call(method, `/v1/messages/${messageId}${path}`), { status: 200 });
    }
    const headers = { "x-quota-daily-remaining": "0" };
    await expectAnswer(await send(world, json), { status: 202, headers });
  }, { plan: { daily: 1 } }));

Deno.test("five hundred sends at once against a quota of a hundred: a hundred are accepted", () =>
  withApi(async (world) => {
    await world.linkedSession();
    const answers = await Promise.all(Array.from({ length: 500 }, () => send(world)));
    const statuses = answers.map((answer) => answer.status);
    assert.equal(statuses.filter((status) => status === 202).length, 100);
    assert.equal(statuses.filter((status) => status === 429).length, 400);
  }, { plan: { daily: 100 } }));

Deno.test("the plan's number of sessions is the limit", () =>
  withApi(async (world) => {
    const create = () => world.call("POST", "/v1/sessions", { json: { name: "one" } });
    const answers = await Promise.all([create(), create(), create()]);
    assert.deepEqual(answers.map((answer) => answer.status).sort(), [201, 403, 403]);
    const refused = answers.find((answer) => answer.status === 403)!;
    await expectAnswer(refused, { status: 403, contains: problem("session_limit_reached") });
  }, { plan: { sessions: 1 } }));

Deno.test("what the floors below throw is rendered by its code, and a surprise tells nothing", async () => {
  const failures: [error: unknown, status: number, code: string, headers?: Record<string, string>][] = [
    [new StoreError("locked", "database is locked"), 503, "storage_unavailable", { "retry-after": "5" }],
    [new StoreError("full", "no space"), 503, "storage_unavailable", { "retry-after": "5" }],
    [new StoreError("unavailable", "no answer"), 503, "storage_unavailable", { "retry-after": "5" }],
    [new NetworkRefusal("The network said no."), 502, "network_error"],
    [new NetworkRefusal("Too fast.", { code: 429 }), 502, "network_error"],
    [new NetworkTimeout("It did not answer."), 504, "network_timeout"],
    [new TypeError("password=hunter2 at /secret/path.ts:1:1"), 500, "internal_error"],
    ["a string", 500, "internal_error"],
  ];
  for (const [error, status, code, headers] of failures) {
    const accept = () => Promise.reject(error);
    await withApi(async (world) => {
      await world.linkedSession();
      await expectAnswer(await send(world), {
        status,
        contains: problem(code),
        lacks: ["hunter2", "locked", "a string", "no space"],
        ...(headers ? { headers } : {}),
      });
      const logged = world.runtime.lines.find((line) => line.msg === "request failed");
      assert.equal(logged?.status, status);
      const upload = { json: { to: "34600111222", file: btoa("%PDF-1.7 hello"), filename: "a.pdf" } };
      assert.equal((await world.call("POST", "/v1/messages/send/document", upload)).status, status);
      // Where the commit may have been written, a message may need the file.
      const unknown = !(error instanceof StoreError) || error.code === "unavailable";
      assert.equal((await world.files()).length, unknown ? 1 : 0, String(error));
    }, { services: { accept } });
  }
});

Deno.test("readiness follows the storage and the stop", async () => {
  const ask = (world: ApiWorld) => world.call("GET", "/readyz", { key: null });
  await withApi(async (world) => {
    const response = await ask(world);
    assert.equal(response.status, 503);
    assert.deepEqual(await response.json(), { status: "storage_unavailable" });
  }, { services: { probe: () => Promise.reject(new Error("broken")) } });
  await withApi(async (world) => {
    const asked = ask(world);
    await world.runtime.clock.advance(2_000);
    assert.equal((await asked).status, 503);
  }, { services: { probe: () => new Promise(() => {}) } });
  await withApi(async (world) => {
    world.stopping.abort();
    const response = await ask(world);
    assert.equal(response.status, 503);
    assert.deepEqual(await response.json(), { status: "stopping" });
    assert.equal((await world.call("GET", "/healthz")).status, 200);
  });
});

Deno.test("made-up methods are one series of the metrics", () =>
  withApi(async (world) => {
    for (const method of ["BREW", "STEEP"]) await world.call(method, "/v1/sessions");
    const text = await (await world.call("GET", "/metrics")).text();
    assert.match(text, /paloma_http_requests_total\{method="OTHER",route="\(none\)",status="405"\} 2\n/);
    assert.doesNotMatch(text, /BREW|STEEP/);
  }));
