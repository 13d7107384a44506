/** Keys that only propose: what they reach of all routes, and how what they sent is approved, changed and refused. */
import assert from "node:assert/strict";
import type { Json } from "../../../src/cli/client.ts";
import type { Route } from "../../../src/http/api/route.ts";
import { ROUTES } from "../../../src/http/resources/resources.ts";
import { expectAnswer, problem } from "../../support/api_table.ts";
import { type ApiWorld, type ApiWorldOptions, withApi } from "../../support/api_world.ts";
import { settle } from "../../support/runtime.ts";

const TO = "34600111222";
const NO_SCOPE = { status: 403, contains: problem("scope_missing") };

/** All that a key with `propose` alone may call. A route that is added here on purpose is a decision. */
const REACHED = new Set([
  ...["text", "location", "contact", "poll", "choices", "reaction", "forward", "template", "bulk", "status"]
    .map((kind) => `POST /v1/messages/send/${kind}`),
  ...["document", "sticker", "voice"].map((kind) => `POST /v1/messages/send/${kind}`),
  "POST /v1/message/send/pdf",
  "POST /v1/messages/send/file",
  "PATCH /v1/messages/{id}",
  "DELETE /v1/messages/{id}",
  "DELETE /v1/messages",
  "POST /v1/messages/{id}/revoke",
]);

async function keyOf(world: ApiWorld, scopes: string[], name = scopes.join()): Promise<string> {
  const made = await world.call("POST", "/v1/account/keys", { json: { name, scopes } });
  return (await made.json()).data.key;
}

const named = ({ method, path }: Route) => `${method.toUpperCase()} ${path}`;

/** A path of the route, with ids of the right form that do not exist. */
function pathOf({ path, operationId }: Route): string {
  const prefix = /^\/v1\/(sessions|messages|webhooks|bulks|verifications|data)/.exec(path)?.[1] ?? "";
  const id = `${
    { sessions: "ses", messages: "msg", webhooks: "whk", bulks: "blk", verifications: "ver", data: "era" }[prefix] ??
      (operationId.endsWith("Key") ? "key" : "era")
  }_${"0".repeat(26)}`;
  const others: Record<string, string> = {
    gid: "120363025246125486@g.us",
    number: TO,
    chat: TO,
    name: "x",
    deliveryId: `evt_${"0".repeat(16)}`,
  };
  return path.replace(/\{(\w+)\}/g, (_, name: string) => others[name] ?? id);
}

Deno.test("a key that proposes reaches what sends and changes messages, and nothing else of all routes", () =>
  withApi(async (world) => {
    const key = await keyOf(world, ["propose"]);
    const reached: string[] = [];
    const needKey = ROUTES.filter(({ access }) => access !== "open");
    for (const declared of needKey) {
      const response = await world.call(declared.method.toUpperCase(), pathOf(declared), { key });
      const { code } = await response.json();
      assert.notEqual(response.status, 500, named(declared));
      if (code !== "scope_missing") reached.push(named(declared));
    }
    assert.deepEqual(reached.sort(), [...REACHED].sort());
    assert.ok(needKey.length > 80, `only ${needKey.length} routes`);
  }));

interface Desk {
  world: ApiWorld;
  agent: string;
  propose(json?: Json): Promise<string>;
  record(id: string): Promise<Json>;
  /** What has left, in order. */
  left(): string[];
}

/** A line that is connected, and a key `agent` that proposes. */
function atDesk(run: (desk: Desk) => Promise<void>, options: ApiWorldOptions = {}): Promise<void> {
  return withApi(async (world) => {
    await world.linkedSession();
    const left: string[] = [];
    world.network.outcome = ({ to, body }) => {
      left.push("text" in body ? String(body.text) : body.kind);
      return { kind: "sent", chat: to };
    };
    const agent = await keyOf(world, ["propose"], "agent");
    await run({
      world,
      agent,
      async propose(json = {}) {
        const answer = await world.call("POST", "/v1/messages/send/text", {
          json: { to: TO, text: "draft", ...json },
          key: agent,
        });
        const body = await expectAnswer(answer, { status: 202, contains: ['"status":"queued"'] });
        await settle();
        return JSON.parse(body).messageId;
      },
      async record(id) {
        return (await (await world.call("GET", `/v1/messages/${id}`)).json()).data;
      },
      left: () => left,
    });
  }, options);
}

async function text(world: ApiWorld, json: Json): Promise<string> {
  const answer = await world.call("POST", "/v1/messages/send/text", { json: { to: TO, ...json } });
  return JSON.parse(await expectAnswer(answer, { status: 202 })).messageId;
}

Deno.test("a proposal waits, with its quota, its event and its place in the list, and leaves once approved", () =>
  atDesk(async ({ world, propose, record, left }) => {
    const id = await propose({ tags: ["a"] });
    const { status, waitsFor, proposedBy } = await record(id);
    assert.deepEqual({ status, waitsFor, proposedBy }, {
      status: "queued",
      waitsFor: { kind: "approval", until: null },
      proposedBy: "agent",
    });
    const events = (await (await world.call("GET", "/v1/events?types=message.proposed")).json()).data;
    assert.deepEqual(events.map(({ data }: Json) => data), [{
      messageId: id,
      to: TO,
      type: "text",
      text: "draft",
      by: "agent",
    }]);
    const list = async () => (await (await world.call("GET", "/v1/messages/proposals")).json());
    assert.deepEqual([(await list()).pagination.total, (await list()).data[0].messageId], [1, id]);
    await text(world, { text: "of a key that sends" });
    await settle();
    assert.deepEqual(left(), ["of a key that sends"], "it holds up nothing in its chat");
    const approved = await expectAnswer(await world.call("POST", `/v1/messages/${id}/approve`), { status: 200 });
    assert.deepEqual(JSON.parse(approved).data.life.map(({ status }: Json) => status), ["queued", "approved"]);
    await settle();
    assert.deepEqual(left(), ["of a key that sends", "draft"]);
    assert.equal((await list()).pagination.total, 0);
    await expectAnswer(await world.call("POST", `/v1/messages/${id}/approve`), {
      status: 409,
      contains: problem("not_waiting_for_approval"),
    });
  }));

Deno.test("proposals leave in the order in which they were proposed, whenever they are approved, at their time", () =>
  atDesk(async ({ world, propose, left, record }) => {
    const sessions = await (await world.call("GET", "/v1/sessions")).json();
    const queue = `/v1/sessions/${sessions.data[0].id}/queue`;
    await world.call("POST", `${queue}/pause`);
    const first = await propose({ text: "1" });
    await text(world, { text: "2" });
    const third = await propose({ text: "3" });
    const sendAt = new Date(world.runtime.clock.now() + 3_600_000).toISOString();
    const later = await propose({ text: "later", sendAt });
    for (const id of [third, later, first]) await world.call("POST", `/v1/messages/${id}/approve`);
    assert.equal((await record(later)).sendAt, sendAt);
    await world.call("POST", `${queue}/resume`);
    await settle();
    assert.deepEqual(left(), ["1", "2", "3"]);
    await world.runtime.clock.advance(3_600_000);
    assert.deepEqual(left(), ["1", "2", "3", "later"]);
  }));

Deno.test("a proposal is edited, put off and refused before, by its key too, and by no other key that proposes", () =>
  atDesk(async ({ world, agent, propose, record, left }) => {
    const other = await keyOf(world, ["propose", "read"], "other");
    const id = await propose();
    const path = `/v1/messages/${id}`;
    const calls: [method: string, path: string, json?: Json][] = [
      ["PATCH", path, { text: "mine now" }],
      ["PATCH", path, { priority: "high" }],
      ["POST", `${path}/revoke`],
      ["DELETE", path],
    ];
    for (const [method, to, json] of calls) {
      await expectAnswer(await world.call(method, to, { json, key: other }), NO_SCOPE);
    }
    await expectAnswer(await world.call("PATCH", path, { json: { text: "better" }, key: agent }), { status: 200 });
    await expectAnswer(await world.call("PATCH", path, { json: { text: "best" } }), {
      status: 200,
      contains: ['"best"'],
    });
    await expectAnswer(await world.call("PATCH", path, { json: { priority: "high" }, key: agent }), { status: 200 });
    await expectAnswer(await world.call("POST", `${path}/approve`, { key: agent }), NO_SCOPE);
    await world.call("POST", `${path}/approve`);
    await settle();
    assert.deepEqual(left(), ["best"]);
    for (const [method, to, json] of calls) {
      await expectAnswer(await world.call(method, to, { json, key: agent }), NO_SCOPE);
    }
    const refused = await propose();
    const cancelled = await world.call("DELETE", `/v1/messages/${refused}`, { key: agent });
    await expectAnswer(cancelled, { status: 200, contains: ['"code":"cancelled"'] });
    assert.equal((await record(refused)).status, "failed");
  }));

Deno.test("a key that proposes cancels neither messages nor bulks of others, by id or by tag", () =>
  atDesk(async ({ world, agent, propose, record }) => {
    const sendAt = new Date(world.runtime.clock.now() + 3_600_000).toISOString();
    const [own, foreign] = [
      await propose({ sendAt, tags: ["t"] }),
      await text(world, { text: "x", sendAt, tags: ["t"] }),
    ];
    await expectAnswer(await world.call("DELETE", "/v1/messages?tag=t", { key: agent }), {
      status: 200,
      contains: ['"cancelled":1'],
    });
    assert.deepEqual([(await record(own)).status, (await record(foreign)).status], ["failed", "queued"]);
    await expectAnswer(await world.call("DELETE", `/v1/messages/${foreign}`, { key: agent }), NO_SCOPE);
    const json = { messages: [{ to: TO, text: "a" }, { to: TO, text: "b" }], sendAt };
    for (
      const [key, expected] of [[undefined, NO_SCOPE], [agent, { status: 200, contains: ['"cancelled":2'] }]] as const
    ) {
      const sent = await (await world.call("POST", "/v1/messages/send/bulk", { json, ...(key ? { key } : {}) })).json();
      await expectAnswer(await world.call("DELETE", `/v1/messages/${sent.bulkId}`, { key: agent }), expected);
    }
  }));

Deno.test("a key with send beside propose sends; one that proposes proposes no more than a commit at once", () =>
  atDesk(async ({ world, agent, left }) => {
    const both = await keyOf(world, ["propose", "send"]);
    await world.call("POST", "/v1/messages/send/text", { json: { to: TO, text: "sent" }, key: both });
    await settle();
    assert.deepEqual(left(), ["sent"]);
    const bulk = (count: number, said = "x") => ({
      json: { messages: Array.from({ length: count }, () => ({ to: TO, text: said })) },
      key: agent,
    });
    await expectAnswer(await world.call("POST", "/v1/messages/send/bulk", bulk(60)), { status: 202 });
    const events = (await (await world.call("GET", "/v1/events?types=message.proposed&limit=100")).json()).data;
    assert.equal(events.length, 60);
    const tooMuch = { status: 400, contains: [...problem("validation_failed"), "more than a key may propose at once"] };
    await expectAnswer(await world.call("POST", "/v1/messages/send/bulk", bulk(200)), tooMuch);
    await expectAnswer(await world.call("POST", "/v1/messages/send/bulk", bulk(10, "x".repeat(40_000))), tooMuch);
  }));

Deno.test("time, opt-outs and quota apply to what waits for approval", () =>
  atDesk(async ({ world, propose, record, left }) => {
    const expiring = await propose({ ttl: 60 });
    const optedOut = await propose({ to: "34600111333" });
    await expectAnswer(await world.call("PUT", "/v1/optouts/34600111333"), { status: 200 });
    assert.equal((await record(optedOut)).error.code, "recipient_opted_out");
    await world.runtime.clock.advance(61_000);
    assert.equal((await record(expiring)).error.code, "expired");
    for (const id of [expiring, optedOut]) {
      await expectAnswer(await world.call("POST", `/v1/messages/${id}/approve`), {
        status: 409,
        contains: problem("not_waiting_for_approval"),
      });
    }
    assert.deepEqual(left(), []);
    const erased = await propose({ to: "34600111444" });
    await expectAnswer(await world.call("POST", "/v1/messages/send/text", { json: { to: TO, text: "x" } }), {
      status: 429,
      contains: problem("quota_exceeded"),
    });
    await world.call("DELETE", `/v1/messages/${erased}`);
    await text(world, { text: "the quota is back" });
  }, { plan: { daily: 3 } }));

Deno.test("a message made from a template is approved and edited as what it says", () =>
  atDesk(async ({ world, agent, propose: _, record, left }) => {
    await world.call("POST", "/v1/templates", { json: { name: "due", text: "Hello {{name}}" } });
    const json = { to: TO, template: "due", variables: { name: "Anna" } };
    const sent = await world.call("POST", "/v1/messages/send/template", { json, key: agent });
    const { messageId } = await sent.json();
    const [event] = (await (await world.call("GET", "/v1/events?types=message.proposed")).json()).data;
    assert.deepEqual([event.data.text, (await record(messageId)).text], ["Hello Anna", "Hello Anna"]);
    const edited = await world.call("PATCH", `/v1/messages/${messageId}`, { json: { text: "Dear Anna" } });
    await expectAnswer(edited, { status: 200, contains: ['"text":"Dear Anna"', '"type":"text"'] });
    await world.call("POST", `/v1/messages/${messageId}/approve`);
    await settle();
    assert.deepEqual(left(), ["Dear Anna"]);
  }));
