import assert from "node:assert/strict";
import type { NewEvent } from "../../../src/event/event.ts";
import { Change, StoreError } from "../../../src/store/kv.ts";
import { expectAnswer } from "../../support/api_table.ts";
import { type ApiWorld, withApi } from "../../support/api_world.ts";
import { settle } from "../../support/runtime.ts";
import { until } from "../../support/until.ts";

const SESSION = "ses_01kf0m3e4v8s2q6w9x1y5z7abc";

function connected(phone: string, sessionId = SESSION): Omit<NewEvent, "accountId"> {
  return { event: "session.connected", sessionId, sessionName: "Front", data: { phone } };
}

function ended(reason: string): Omit<NewEvent, "accountId"> {
  return {
    event: "session.disconnected",
    sessionId: SESSION,
    sessionName: "Front",
    data: { status: "disconnected", reason },
  };
}

interface Page {
  data: { id: string; event: string; data: Record<string, string> }[];
  next: string | null;
}

async function feed(world: ApiWorld, query: string): Promise<Page> {
  return await (await world.call("GET", `/v1/events?${query}`)).json();
}

Deno.test("the feed is read to its end by cursor, each event once, oldest first", () =>
  withApi(async (world) => {
    await world.log(...Array.from({ length: 25 }, (_, i) => connected(String(1000000 + i))));
    const seen: string[] = [];
    let query = "limit=10";
    for (;;) {
      const page = await feed(world, query);
      seen.push(...page.data.map((event) => event.data.phone!));
      if (page.next === null) break;
      query = `limit=10&after=${page.next}`;
    }
    assert.deepEqual(seen, Array.from({ length: 25 }, (_, i) => String(1000000 + i)));
  }));

Deno.test("the feed is filtered by type and session", () =>
  withApi(async (world) => {
    await world.log(connected("1"), ended("lost"), connected("2", "ses_other"));
    const phones = async (query: string) =>
      (await feed(world, query)).data.map(({ data }) => data.phone ?? data.reason);
    assert.deepEqual(await phones("types=session.connected"), ["1", "2"]);
    assert.deepEqual(await phones("types=session.disconnected,%20session.connected"), ["1", "lost", "2"]);
    assert.deepEqual(await phones(`sessionId=${SESSION}`), ["1", "lost"]);
    assert.deepEqual(await phones("sessionId=ses_nobody"), []);
  }));

Deno.test("whoever begins now gets a cursor and what comes after it", () =>
  withApi(async (world) => {
    assert.deepEqual((await feed(world, "after=now")).next, null, "there is nothing yet to be after");
    await world.log(connected("1"), connected("2"));
    const start = await feed(world, "after=now");
    assert.deepEqual(start.data, []);
    await world.log(connected("3"));
    const page = await feed(world, `after=${start.next}`);
    assert.deepEqual(page.data.map(({ data }) => data.phone), ["3"]);
  }));

/** Reads a stream event by event. */
class Stream {
  readonly #reader: ReadableStreamDefaultReader<string>;
  #text = "";

  constructor(response: Response) {
    this.#reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** The next block of lines; null at the end. */
  async next(): Promise<string | null> {
    while (!this.#text.includes("\n\n")) {
      const { done, value } = await this.#reader.read();
      if (done) return null;
      this.#text += value;
    }
    const end = this.#text.indexOf("\n\n");
    const block = this.#text.slice(0, end);
    this.#text = this.#text.slice(end + 2);
    return block;
  }

  async close(): Promise<void> {
    await this.#reader.cancel();
  }
}

async function open(world: ApiWorld, query = "", headers: Record<string, string> = {}): Promise<Stream> {
  const response = await world.call("GET", `/v1/events/stream${query}`, { headers });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type")!, /^text\/event-stream/);
  const stream = new Stream(response);
  assert.equal(await stream.next(), "retry: 2000");
  return stream;
}

Deno.test("the stream gives what is kept, then what happens", () =>
  withApi(async (world) => {
    await world.log(connected("1"));
    const stream = await open(world);
    const first = (await stream.next())!;
    assert.match(first, /^id: evt_\w+\nevent: session\.connected\ndata: \{"id":"evt_/);
    const waiting = stream.next();
    await world.log(connected("2"));
    assert.match((await waiting)!, /"phone":"2"/);
    await stream.close();
  }));

Deno.test("the stream goes on after the last event that was seen", () =>
  withApi(async (world) => {
    await world.log(connected("1"), connected("2"), connected("3"));
    const [, second] = (await feed(world, "")).data;
    const byHeader = await open(world, "", { "last-event-id": second!.id });
    assert.match((await byHeader.next())!, /"phone":"3"/);
    const byQuery = await open(world, `?after=${second!.id}`);
    assert.match((await byQuery.next())!, /"phone":"3"/);
    await byHeader.close();
    await byQuery.close();
  }));

Deno.test("the stream is filtered like the feed", () =>
  withApi(async (world) => {
    const stream = await open(world, "?types=session.disconnected");
    const waiting = stream.next();
    await world.log(connected("1"), connected("2"), ended("lost"));
    assert.match((await waiting)!, /^id: \S+\nevent: session\.disconnected/);
    await stream.close();
  }));

Deno.test("a filtered stream misses nothing of what happens at once", () =>
  withApi(async (world) => {
    await world.log(connected("1"));
    const { events } = world.services;
    const stream = await open(world, "?types=session.disconnected");
    const first = stream.next();
    for (let i = 0; i < 30; i++) {
      const change = new Change();
      for (const event of [connected("2"), ended(`a${i}`), connected("3"), ended(`b${i}`), ended(`c${i}`)]) {
        events.append(change, { ...event, accountId: world.account.id } as NewEvent);
      }
      await world.kv.commit(change);
      await settle();
      events.committed(world.account.id);
      await settle();
    }
    const seen = [await first];
    while (seen.length < 90) seen.push(await stream.next());
    const reasons = seen.map((block) => /"reason":"(\w+)"/.exec(block!)![1]);
    assert.deepEqual(reasons, Array.from({ length: 30 }, (_, i) => [`a${i}`, `b${i}`, `c${i}`]).flat());
    await stream.close();
  }));

Deno.test("a quiet stream says every 15 seconds that it is alive", () =>
  withApi(async (world) => {
    const stream = await open(world);
    const waiting = stream.next();
    await world.runtime.clock.advance(15_000);
    assert.equal(await waiting, ": keep-alive");
    await stream.close();
  }));

Deno.test("a stream ends when the gateway stops", () =>
  withApi(async (world) => {
    const stream = await open(world);
    const waiting = stream.next();
    world.stopping.abort();
    assert.equal(await waiting, null);
  }));

Deno.test("a stream whose key was regenerated tells nothing that happens afterwards, and ends", () =>
  withApi(async (world) => {
    const listeners = countListeners(world);
    const stream = await open(world);
    const next = stream.next();
    await world.otherProcess().rotateKey(world.account.id);
    await world.log(connected("1"));
    assert.equal(await next, null);
    assert.equal(listeners(), 0);
  }));

Deno.test("a quiet stream ends when its account was deactivated", () =>
  withApi(async (world) => {
    const stream = await open(world);
    const next = stream.next();
    await world.accounts.update(world.account.id, { active: false });
    await world.runtime.clock.advance(15_000);
    assert.equal(await next, null);
  }));

/** How many listen to the event log, from now on. */
function countListeners({ services: { events } }: ApiWorld): () => number {
  const listeners = new Set<symbol>();
  const { subscribe } = events;
  events.subscribe = (accountId, wake) => {
    const listener = Symbol();
    listeners.add(listener);
    const unsubscribe = subscribe(accountId, wake);
    return () => {
      listeners.delete(listener);
      unsubscribe();
    };
  };
  return () => listeners.size;
}

Deno.test("a stream that was left listens no more", () =>
  withApi(async (world) => {
    const listeners = countListeners(world);
    const stream = await open(world);
    assert.equal(listeners(), 1);
    await stream.close();
    assert.equal(listeners(), 0);
  }));

Deno.test("an answer that nobody reads listens to nothing", () =>
  withApi(async (world) => {
    const listeners = countListeners(world);
    const head = await world.call("HEAD", "/v1/events/stream");
    assert.deepEqual([head.status, await head.text()], [200, ""]);
    assert.equal(listeners(), 0);
  }));

Deno.test("a stream breaks when the store does, and listens no more", () =>
  withApi(async (world) => {
    const listeners = countListeners(world);
    const stream = await open(world);
    const broken = assert.rejects(stream.next(), StoreError);
    world.kv.trouble = new StoreError("locked", "another process holds it");
    await world.runtime.clock.advance(15_000);
    await broken;
    assert.equal(listeners(), 0);
    world.kv.trouble = null;
  }));

Deno.test("a webhook's life: created, changed, tested, rotated, its log read, removed", () =>
  withApi(async (world) => {
    const session = await world.linkedSession();
    const json = { url: "https://example.com/hook", events: ["message.sent"], sessionId: session };
    const { data: created } = JSON.parse(
      await expectAnswer(await world.call("POST", "/v1/webhooks", { json }), { status: 201 }),
    );
    const at = `/v1/webhooks/${created.id}`;
    assert.deepEqual([created.url, created.events, created.sessionId], [json.url, json.events, session]);
    await expectAnswer(await world.call("PUT", at, { json: { active: false } }), {
      status: 200,
      contains: ['"active":false', '"events":["message.sent"]'],
      lacks: [created.secret, "whsec_"],
    });
    await expectAnswer(await world.call("PUT", at, { json: { events: ["session.qr"], url: "https://example.org/" } }), {
      status: 200,
      contains: ['"active":false', '"events":["session.qr"]', '"url":"https://example.org/"'],
    });
    const unchanged = await expectAnswer(await world.call("PUT", at, { json: {} }), {
      status: 200,
      contains: ['"session.qr"'],
    });
    const shown = await expectAnswer(await world.call("GET", at), {
      status: 200,
      contains: ['"active":false'],
      lacks: ["whsec_"],
    });
    assert.deepEqual(JSON.parse(shown).data.events, JSON.parse(unchanged).data.events);
    const { data: rotated } = JSON.parse(
      await expectAnswer(await world.call("POST", `${at}/rotate-secret`), { status: 200, contains: ["whsec_"] }),
    );
    assert.notEqual(rotated.secret, created.secret);
    assert.ok(rotated.previousSecretUntil > rotated.updatedAt);
    await expectAnswer(await world.call("POST", `${at}/test`), { status: 200, contains: [/"eventId":"evt_\w+"/] });
    await expectAnswer(await world.call("PUT", at, { json: { active: true } }), { status: 200 });
    // The worker's code is loaded with the first webhook, whenever that is done.
    await until(async () => (await (await world.call("GET", `${at}/deliveries`)).json()).data.length, "the attempt");
    const { data: log } = JSON.parse(
      await expectAnswer(await world.call("GET", `${at}/deliveries?limit=5&status=pending`), {
        status: 200,
        contains: ['"event":"webhook.test"', '"error":"there is no network here"', /"next":/],
      }),
    );
    await expectAnswer(await world.call("POST", `${at}/deliveries/${log[0].id}/redeliver`), {
      status: 200,
      contains: [`"id":"${log[0].id}"`, `"eventId":"${log[0].eventId}"`],
    });
    await expectAnswer(await world.call("GET", `${at}/deliveries?before=${log[0].id}`), {
      status: 200,
      contains: ['"data":[]'],
    });
    await expectAnswer(await world.call("POST", `${at}/redeliver`, { json: { since: "2026-01-15T00:00:00Z" } }), {
      status: 200,
      contains: [/^\{"data":\{"scheduled":\d+\}\}$/],
    });
    await expectAnswer(await world.call("DELETE", at), { status: 200, contains: [created.id], lacks: ["whsec_"] });
    await expectAnswer(await world.call("DELETE", at), { status: 404 });
    await expectAnswer(await world.call("GET", "/v1/webhooks"), { status: 200, contains: ['"data":[]'] });
  }));
