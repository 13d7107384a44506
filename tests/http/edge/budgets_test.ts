/** What an account has in hand is bounded; what is too much is refused, and says when to come again. */
import assert from "node:assert/strict";
import { mock } from "node:test";
import { makeBudgets, Tally } from "../../../src/http/edge/budgets.ts";
import { Problem } from "../../../src/errors.ts";
import { makeMetrics } from "../../../src/ops/metrics.ts";
import { settle, testRuntime } from "../../support/runtime.ts";
import { withApi } from "../../support/api_world.ts";

const refused = (code: string) => (error: unknown) =>
  error instanceof Problem && error.code === code && error.extras.retryAfterSeconds === 1;

Deno.test("an account is refused what is over its share, everybody what is over the whole", () => {
  const tally = new Tally("things", { inAll: 10, each: 6, free: 0 });
  const a = tally.open("a");
  a.add(4);
  assert.throws(() => a.add(3), refused("too_much_at_once"));
  const b = tally.open("b");
  b.add(5);
  assert.throws(() => tally.open("a").add(2), refused("busy"));
  assert.equal(tally.sum, 9);
  b[Symbol.dispose]();
  b[Symbol.dispose]();
  tally.open("a").add(2);
  assert.equal(tally.sum, 6);
});

Deno.test("what is small passes, however much there is", () => {
  const tally = new Tally("things", { inAll: 10, each: 10, free: 3 });
  tally.open("a").add(13);
  assert.equal(tally.sum, 10);
  const small = tally.open("a");
  small.add(2);
  small.add(1);
  assert.throws(() => small.add(1), refused("too_much_at_once"));
});

Deno.test("of bulks that come at once one account has a body's worth, and another account its own", async () => {
  await withApi(async (world) => {
    const sessionId = await world.linkedSession();
    // Half of what an account may have: of three at once the third is too much.
    const text = "x".repeat(60_000);
    const json = { sessionId, messages: Array.from({ length: 260 }, () => ({ to: "4915550000001", text })) };
    const send = () => world.call("POST", "/v1/messages/send/bulk", { json, headers: lengthOf(json) });
    const answers = await Promise.all([send(), send(), send()]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 202, 429]);
    const late = answers.find(({ status }) => status === 429)!;
    assert.equal(late.headers.get("retry-after"), "1");
    assert.equal((await late.json()).code, "too_much_at_once");
    assert.equal((await send()).status, 202);
    assert.equal(world.services.budgets.bodies.sum, 0);
  });
});

Deno.test("pages of what may be long wait for their account's turn", async () => {
  await withApi(async (world) => {
    const sessionId = await world.linkedSession();
    const { reads } = world.services.budgets;
    const place = await reads.enter({ tenant: world.account.id });
    const webhook = await (await world.call("POST", "/v1/webhooks", { json: { url: "https://hooks.test/" } })).json();
    const deliveries = `webhooks/${webhook.data.id}/deliveries`;
    const lists = ["events", "messages/history", "sessions", "bulks", "optouts", "erasures"];
    const paths = [...lists, `sessions/${sessionId}/queue`, `sessions/${sessionId}/health`, deliveries];
    const asking = paths.map((path) => world.call("GET", `/v1/${path}`));
    const bulk = world.call("GET", `/v1/bulks/${world.runtime.ids.next("blk")}`);
    while (reads.waiting < paths.length + 1) await settle();
    place[Symbol.dispose]();
    for (const answer of await Promise.all(asking)) {
      assert.equal(answer.status, 200);
      await answer.body?.cancel();
    }
    assert.equal((await bulk).status, 404);
    await (await bulk).body?.cancel();
  });
});

Deno.test("of work on thousands of rows an account has one piece at a time", async () => {
  await withApi(async (world) => {
    const { jobs } = world.services.budgets;
    const place = await jobs.enter({ tenant: world.account.id });
    const asking = [
      world.call("DELETE", `/v1/bulks/${world.runtime.ids.next("blk")}`),
      world.call("POST", `/v1/webhooks/${world.runtime.ids.next("whk")}/redeliver`, {
        json: { since: "2026-01-01T00:00:00Z" },
      }),
    ];
    while (jobs.waiting < asking.length) await settle();
    place[Symbol.dispose]();
    for (const answer of await Promise.all(asking)) {
      assert.equal(answer.status, 404);
      await answer.body?.cancel();
    }
  });
});

function lengthOf(json: unknown): Record<string, string> {
  return { "content-length": String(JSON.stringify(json).length) };
}

Deno.test("an account has so many event streams at a time, and one that ends makes room", async () => {
  const budgets = makeBudgets({ bodyBytes: 0, metrics: makeMetrics(), clock: testRuntime().clock });
  await withApi(async (world) => {
    const read = mock.method(world.services.events, "read");
    const streams: Response[] = [];
    for (;;) {
      const answer = await world.call("GET", "/v1/events/stream?types=session.restricted");
      if (answer.status !== 200) {
        assert.equal(answer.status, 429);
        assert.equal((await answer.json()).code, "too_much_at_once");
        break;
      }
      streams.push(answer);
    }
    assert.equal(budgets.streams.sum, 3);
    assert.equal(read.mock.callCount(), 0, "the log is read for nobody yet, and never for one that was refused");
    assert.equal((await world.call("GET", "/v1/events/stream?after=evt_1")).status, 400);
    assert.equal(budgets.streams.sum, 3);
    await (await world.call("HEAD", "/v1/events/stream")).body?.cancel();
    await streams.pop()!.body!.cancel();
    const again = await world.call("GET", "/v1/events/stream");
    assert.equal(again.status, 200);
    for (const stream of [...streams, again]) await stream.body!.cancel();
    assert.equal(budgets.streams.sum, 0);
  }, { services: { budgets }, plan: { eventStreams: 3 } });
});
