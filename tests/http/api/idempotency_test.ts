import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { accountKeys } from "../../../src/account/rows.ts";
import { StoreError } from "../../../src/store/kv.ts";
import { expectAnswer, problem } from "../../support/api_table.ts";
import { type ApiWorld, type CallOptions, withApi } from "../../support/api_world.ts";
import { until } from "../../support/until.ts";

const TO = "34600111222";
const KEYED = { "idempotency-key": "order-1042" };

async function total(world: ApiWorld): Promise<number> {
  return (await (await world.call("GET", "/v1/messages/history")).json()).pagination.total;
}

function picture(name: string, content: string, fields: Record<string, string> = { to: TO }): CallOptions {
  const body = new FormData();
  for (const [field, value] of Object.entries(fields)) body.set(field, value);
  body.set("file", new File([content], name));
  return { body, headers: KEYED };
}

/** Each way to send, twice the same and once another. */
const SENDS: [path: string, same: () => CallOptions, other: () => CallOptions][] = [
  ["/v1/messages/send/text", () => ({ json: { to: TO, text: "a" } }), () => ({ json: { to: TO, text: "b" } })],
  [
    "/v1/messages/send/bulk",
    () => ({ json: { messages: [{ to: TO, text: "a" }, { to: TO, text: "b" }] } }),
    () => ({ json: { messages: [{ to: TO, text: "a" }] } }),
  ],
  [
    "/v1/messages/send/document",
    () => ({ json: { to: TO, file: btoa("hello"), filename: "a.txt" } }),
    () => ({ json: { to: TO, file: btoa("hullo"), filename: "a.txt" } }),
  ],
  [
    "/v1/message/send/pdf",
    () => ({ json: { number: TO, file: btoa("%PDF-1.4"), message: "x", filename: "a.pdf" } }),
    () => ({ json: { number: TO, file: btoa("%PDF-1.4"), message: "y", filename: "a.pdf" } }),
  ],
  ["/v1/messages/send/file", () => picture("a.png", "abc"), () => picture("a.png", "abd")],
];

for (const [path, same, other] of SENDS) {
  Deno.test(`the same key and body give the first answer, another body is refused: ${path}`, () =>
    withApi(async (world) => {
      await world.linkedSession();
      const post = (options: CallOptions) =>
        world.call("POST", path, { ...options, headers: { ...options.headers, ...KEYED } });
      const first = await expectAnswer(await post(same()), { status: 202 });
      const accepted = await total(world);
      assert.equal(await expectAnswer(await post(same()), { status: 202 }), first);
      await expectAnswer(await post(other()), { status: 422, contains: problem("idempotency_key_reused") });
      assert.equal(await total(world), accepted);
      await expectAnswer(await post({ ...same(), headers: { "idempotency-key": "another" } }), { status: 202 });
      await until(async () => (await world.files()).length === 0, "the files of repetitions to be gone");
    }));

  Deno.test(`fifty at once with one key are one: ${path}`, () =>
    withApi(async (world) => {
      await world.linkedSession();
      const one = await world.call("POST", path, { ...same(), headers: { "idempotency-key": "alone" } });
      assert.equal(one.status, 202, await one.text());
      const accepted = await total(world);
      const answers = await Promise.all(Array.from({ length: 50 }, () => {
        const options = same();
        return world.call("POST", path, { ...options, headers: { ...options.headers, ...KEYED } });
      }));
      const texts = new Set(await Promise.all(answers.map((answer) => expectAnswer(answer, { status: 202 }))));
      assert.equal(texts.size, 1);
      assert.equal(await total(world), 2 * accepted);
    }));
}

Deno.test("a replayed send gets its answer although its session is gone", () =>
  withApi(async (world) => {
    const session = await world.linkedSession();
    const post = () =>
      world.call("POST", "/v1/messages/send/text", { json: { sessionId: session, to: TO, text: "a" }, headers: KEYED });
    const first = await expectAnswer(await post(), { status: 202 });
    await world.call("POST", `/v1/sessions/${session}/logout`);
    assert.equal(await expectAnswer(await post(), { status: 202 }), first);
    await world.call("DELETE", `/v1/sessions/${session}`);
    assert.equal(await expectAnswer(await post(), { status: 202 }), first);
  }));

/** What is made by a POST: its path, a body, another one. */
const CREATIONS: [path: string, same: unknown, other: unknown][] = [
  ["/v1/sessions", { name: "x" }, { name: "y" }],
  ["/v1/webhooks", { url: "https://example.com" }, { url: "https://example.org" }],
];

/** The account's records under the path, after the one key made one and its repetitions had the same answer. */
async function expectOne(world: ApiWorld, [path, same, other]: (typeof CREATIONS)[number], first: string) {
  const post = (json: unknown) => world.call("POST", path, { json, headers: KEYED });
  assert.equal(await expectAnswer(await post(same), { status: 201 }), first);
  await expectAnswer(await post(other), { status: 422, contains: problem("idempotency_key_reused") });
  const { data } = await (await world.call("GET", path)).json();
  assert.equal(data.length, 1);
  const { _id, id = _id } = JSON.parse(first).data;
  assert.equal(data[0]._id ?? data[0].id, id);
}

for (const creation of CREATIONS) {
  const [path, same] = creation;
  const plan = { sessions: 1 };
  const post = (world: ApiWorld) => world.call("POST", path, { json: same, headers: KEYED });

  Deno.test(`fifty at once with one key make one: ${path}`, () =>
    withApi(async (world) => {
      const answers = await Promise.all(Array.from({ length: 50 }, () => post(world)));
      const texts = new Set(await Promise.all(answers.map((answer) => expectAnswer(answer, { status: 201 }))));
      assert.equal(texts.size, 1);
      await expectOne(world, creation, [...texts][0]!);
    }, { plan }));

  Deno.test(`the answer is on disk with what it tells of, should all fail right afterwards: ${path}`, () =>
    withApi(async (world) => {
      const { kv } = world;
      kv.committed = () => kv.trouble = new StoreError("unavailable", "the store went away");
      const first = await expectAnswer(await post(world), { status: 201 });
      kv.committed = () => {};
      kv.trouble = null;
      await expectOne(world, creation, first);
    }, { plan }));

  Deno.test(`a repetition tells what was made although nobody could know it then: ${path}`, () =>
    withApi(async (world) => {
      const { kv } = world;
      const commit = kv.commit.bind(kv);
      kv.commit = async (change) => {
        await commit(change);
        throw kv.trouble = new StoreError("unavailable", "the store went away before it answered");
      };
      await expectAnswer(await post(world), { status: 503, contains: problem("storage_unavailable") });
      kv.commit = commit;
      kv.trouble = null;
      await expectOne(world, creation, await expectAnswer(await post(world), { status: 201 }));
    }, { plan }));

  Deno.test(`what was made is reported although the answer of the store was lost: ${path}`, () =>
    withApi(async (world) => {
      const { kv } = world;
      const commit = kv.commit.bind(kv);
      kv.commit = async (change) => {
        await commit(change);
        throw new StoreError("unavailable", "the answer of the store was lost");
      };
      const first = await expectAnswer(await post(world), { status: 201 });
      kv.commit = commit;
      await expectOne(world, creation, first);
    }, { plan }));

  Deno.test(`what could not be written is made by the repetition: ${path}`, () =>
    withApi(async (world) => {
      const { kv } = world;
      const commit = kv.commit.bind(kv);
      kv.commit = () => Promise.reject(new StoreError("full", "no space"));
      await expectAnswer(await post(world), { status: 503, contains: problem("storage_unavailable") });
      kv.commit = commit;
      await expectOne(world, creation, await expectAnswer(await post(world), { status: 201 }));
    }, { plan }));
}

Deno.test("one key for two paths at once makes one thing", () =>
  withApi(async (world) => {
    const answers = await Promise.all(
      CREATIONS.map(([path, json]) => world.call("POST", path, { json, headers: KEYED })),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 422]);
  }));

Deno.test("one key is for one request, whatever its path", () =>
  withApi(async (world) => {
    await world.linkedSession();
    const webhook = { json: { url: "https://example.com" }, headers: KEYED };
    const first = await expectAnswer(await world.call("POST", "/v1/webhooks", webhook), { status: 201 });
    assert.equal(await expectAnswer(await world.call("POST", "/v1/webhooks", webhook), { status: 201 }), first);
    const text = { json: { to: TO, text: "a" }, headers: KEYED };
    const reused = { status: 422, contains: problem("idempotency_key_reused") };
    await expectAnswer(await world.call("POST", "/v1/messages/send/text", text), reused);
    await expectAnswer(await world.call("POST", "/v1/sessions", { json: { name: "x" }, headers: KEYED }), reused);
    const { apiKey: key } = await world.accounts.create({ name: "other", plan: "tested" });
    await expectAnswer(await world.call("POST", "/v1/webhooks", { ...webhook, key }), { status: 201 });
  }));

Deno.test("a refusal is not kept", () =>
  withApi(async (world) => {
    const post = (text: string) =>
      world.call("POST", "/v1/messages/send/text", { json: { to: TO, text }, headers: KEYED });
    await expectAnswer(await post(""), { status: 400 });
    await expectAnswer(await post("a"), { status: 409, contains: problem("no_connected_session") });
    await world.linkedSession();
    await expectAnswer(await post("a"), { status: 202 });
  }));

Deno.test("an answer that is kept holds no secret that can be read from the disk", () =>
  withApi(async (world) => {
    const answer = await world.call("POST", "/v1/webhooks", { json: { url: "https://example.com" }, headers: KEYED });
    const { data } = JSON.parse(await expectAnswer(answer, { status: 201 }));
    let kept = 0;
    for await (const { value } of world.kv.list({ prefix: accountKeys.answers() })) {
      kept++;
      assert.ok(value.answer && !Buffer.from(value.answer).includes(data.secret));
    }
    assert.equal(kept, 1);
  }));
