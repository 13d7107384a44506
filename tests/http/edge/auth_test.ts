import assert from "node:assert/strict";
import { expectAnswer, problem } from "../../support/api_table.ts";
import { type ApiWorld, type CallOptions, withApi } from "../../support/api_world.ts";
import { settle } from "../../support/runtime.ts";

const sessions = (world: ApiWorld, options: CallOptions = {}) => world.call("GET", "/v1/sessions", options);

Deno.test("a deactivated account is refused, and let in again", () =>
  withApi(async (world) => {
    await world.accounts.update(world.account.id, { active: false });
    await expectAnswer(await sessions(world), { status: 401, contains: problem("account_deactivated") });
    await world.accounts.update(world.account.id, { active: true });
    await expectAnswer(await sessions(world), { status: 200 });
  }));

Deno.test("a subscription ends at its millisecond, for reads too", () =>
  withApi(async (world) => {
    await world.accounts.update(world.account.id, { expiresAt: world.runtime.clock.now() + 1 });
    await expectAnswer(await sessions(world), { status: 200 });
    await world.runtime.clock.advance(1);
    await expectAnswer(await sessions(world), { status: 403, contains: problem("subscription_expired") });
  }));

Deno.test("a regenerated key replaces the old one at once", () =>
  withApi(async (world) => {
    const key = await world.accounts.rotateKey(world.account.id);
    await expectAnswer(await sessions(world), { status: 401, contains: problem("api_key_invalid"), lacks: [key] });
    await expectAnswer(await sessions(world, { key }), { status: 200 });
  }));

Deno.test("a key that another process regenerates is refused at once, for sends and for what is wrong with them", () =>
  withApi(async (world) => {
    await world.linkedSession();
    const send = (json: object) => world.call("POST", "/v1/messages/send/text", { json });
    const right = { to: "34600111222", text: "hello" };
    await expectAnswer(await send(right), { status: 202 });
    await expectAnswer(await send(right), { status: 202 });
    await world.otherProcess().rotateKey(world.account.id);
    const refused = { status: 401, contains: problem("api_key_invalid") };
    await expectAnswer(await send(right), refused);
    await expectAnswer(await send({ to: "nobody" }), refused);
    await expectAnswer(await send({ ...right, sessionId: "ses_00000000000000000000000000" }), refused);
  }));

Deno.test("a send right after its session was logged out or deleted is refused as always", () =>
  withApi(async (world) => {
    const sessionId = await world.linkedSession();
    const send = () =>
      world.call("POST", "/v1/messages/send/text", { json: { sessionId, to: "34600111222", text: "hello" } });
    await expectAnswer(await send(), { status: 202 });
    world.network.of(sessionId).ends("logged_out", 401);
    await settle();
    await expectAnswer(await send(), { status: 409, contains: problem("session_not_connected") });
  }));

Deno.test("whoever has no key is told that, whatever else is wrong with the request", () =>
  withApi(async (world) => {
    for (const path of ["/v1/messages/send/text", "/v1/webhooks"]) {
      const answer = await world.call("POST", path, { json: {}, key: null, headers: { "idempotency-key": "a b" } });
      await expectAnswer(answer, { status: 401, contains: problem("api_key_missing") });
    }
  }));

Deno.test("a key that is bound to addresses works from those alone", () =>
  withApi(async (world) => {
    await world.accounts.update(world.account.id, { allowedIps: ["203.0.113.0/24", "2001:db8::/32", "198.51.100.7"] });
    const rows: [from: string, forwarded: string | null, status: number][] = [
      ["203.0.113.255", null, 200],
      ["203.0.114.0", null, 403],
      ["198.51.100.7", null, 200],
      ["::ffff:198.51.100.7", null, 200],
      ["2001:db8:ffff::1", null, 200],
      ["2001:db9::1", null, 403],
      ["192.0.2.1", "203.0.113.1", 403],
      ["10.0.0.1", "203.0.113.1", 200],
      ["10.0.0.1", "203.0.113.1, 192.0.2.1", 403],
      ["10.0.0.1", "192.0.2.1, 203.0.113.1", 200],
      ["10.0.0.1", null, 403],
      ["", null, 403],
    ];
    for (const [from, forwarded, status] of rows) {
      const headers: Record<string, string> = forwarded === null ? {} : { "x-forwarded-for": forwarded };
      const response = await sessions(world, { from, headers });
      await expectAnswer(response, { status, contains: status === 403 ? problem("ip_not_allowed") : [] });
    }
  }, { trustedProxies: ["10.0.0.0/8"] }));

Deno.test("a key that is bound to domains works from their pages alone", () =>
  withApi(async (world) => {
    await world.accounts.update(world.account.id, { allowedDomains: ["example.com"] });
    const rows: [headers: Record<string, string>, status: number][] = [
      [{ origin: "https://example.com" }, 200],
      [{ origin: "https://shop.example.com:8443" }, 200],
      [{ origin: "https://EXAMPLE.com" }, 200],
      [{ origin: "https://notexample.com" }, 403],
      [{ origin: "https://example.com.evil.net" }, 403],
      [{ origin: "null" }, 403],
      [{ origin: "example.com" }, 403],
      [{}, 403],
      [{ referer: "https://example.com/page?q=1" }, 200],
      [{ referer: "https://evil.net/?example.com" }, 403],
      [{ origin: "https://evil.net", referer: "https://example.com/" }, 403],
    ];
    for (const [headers, status] of rows) {
      const response = await sessions(world, { headers });
      await expectAnswer(response, { status, contains: status === 403 ? problem("domain_not_allowed") : [] });
    }
  }));

Deno.test("another account's ids are nobody's", () =>
  withApi(async (world) => {
    const session = await world.linkedSession();
    const sent = await (await world.call("POST", "/v1/messages/send/text", { json: { to: "34600111222", text: "hi" } }))
      .json();
    const { data: webhook } = await (await world.call("POST", "/v1/webhooks", { json: { url: "https://example.com" } }))
      .json();
    const { apiKey: key } = await world.accounts.create({ name: "other", plan: "tested" });
    const asked: [string, string, unknown?][] = [
      ["GET", `/v1/sessions/${session}/qr`],
      ["GET", `/v1/sessions/${session}/status`],
      ["GET", `/v1/sessions/${session}/groups`],
      ["GET", `/v1/sessions/${session}/queue`],
      ["POST", `/v1/sessions/${session}/check-number`, { number: "34600111222" }],
      ["POST", `/v1/sessions/${session}/reconnect`],
      ["POST", `/v1/sessions/${session}/disconnect`],
      ["POST", `/v1/sessions/${session}/logout`],
      ["DELETE", `/v1/sessions/${session}`],
      ["POST", "/v1/messages/send/text", { sessionId: session, to: "34600111222", text: "hi" }],
      ["GET", `/v1/messages/${sent.messageId}/status`],
      ["DELETE", `/v1/messages/${sent.messageId}`],
      ["GET", `/v1/webhooks/${webhook.id}`],
      ["PUT", `/v1/webhooks/${webhook.id}`, { active: false }],
      ["POST", `/v1/webhooks/${webhook.id}/rotate-secret`],
      ["DELETE", `/v1/webhooks/${webhook.id}`],
      ["POST", "/v1/webhooks", { url: "https://example.com", sessionId: session }],
    ];
    for (const [method, path, json] of asked) {
      const response = await world.call(method, path, { key, json });
      await expectAnswer(response, { status: 404, contains: problem("not_found"), lacks: ["Support line"] });
    }
    for (const path of ["/v1/sessions", "/v1/messages/history", "/v1/webhooks", "/v1/events"]) {
      await expectAnswer(await world.call("GET", path, { key }), { status: 200, contains: ['"data":[]'] });
    }
    assert.equal((await (await world.call("GET", `/v1/sessions/${session}/status`)).json()).data.status, "connected");
  }));

Deno.test("no key, text or secret reaches the log", () =>
  withApi(async (world) => {
    await world.linkedSession();
    const text = "a text that nobody else may read";
    await world.call("POST", "/v1/messages/send/text", { json: { to: "34600111222", text } });
    await world.call("POST", "/v1/messages/send/text", { json: { to: "bad", text } });
    const { data } = await (await world.call("POST", "/v1/webhooks", { json: { url: "https://example.com" } })).json();
    await sessions(world, { key: "pk_wrong" });
    const log = JSON.stringify(world.runtime.lines);
    assert.ok(log.includes("/v1/messages/send/text"), "requests are logged");
    for (const secret of [world.apiKey, text, data.secret, "pk_wrong"]) assert.ok(!log.includes(secret), secret);
  }));
