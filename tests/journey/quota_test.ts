/** Quotas under parallel sends, whole bulks refused, and plans that change while the gateway runs. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { accepted, type ApiAnswer, post, refused } from "../support/api_calls.ts";
import { runCommand } from "../support/gateway_process.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915554000001";
const CUSTOMER = "4917554000001";
const PLAN = { delayMinMs: 0, delayMaxMs: 0, daily: 100, monthly: 1_000 };

Deno.test("a quota counts exactly, however many ask at once", (t) =>
  withStage(() => openStage({ plan: PLAN }), async (stage) => {
    await stage.addPhone(CUSTOMER);
    const { sessionId } = await stage.linkLine(LINE);
    // Paused, so that nothing leaves and what waits can be counted.
    await stage.api.call("POST", `/sessions/${sessionId}/disconnect`);
    const sendText = (text: string) => post(stage, "/messages/send/text", { json: { sessionId, to: CUSTOMER, text } });
    const sendBulk = (count: number) => {
      const messages = Array.from({ length: count }, (_, i) => ({ to: CUSTOMER, text: `bulk of ${count}, ${i}` }));
      return post(stage, "/messages/send/bulk", { json: { sessionId, messages } });
    };

    await t.step("of 500 parallel sends exactly 100 are accepted, the others told what is left and when", async () => {
      const answers = await Promise.all(Array.from({ length: 500 }, (_, i) => sendText(`parallel text ${i}`)));
      const taken = answers.filter(({ status }) => status === 202);
      const others = answers.filter(({ status }) => status !== 202);
      assert.equal(taken.length, 100);
      assert.equal(new Set(taken.map(({ body }) => body.messageId)).size, 100);
      assert.deepEqual(leftOf(taken, "x-quota-daily-remaining"), downFrom(99, 100));
      assert.deepEqual(leftOf(taken, "x-quota-monthly-remaining"), downFrom(999, 100));
      assert.equal(others.length, 400);
      for (const { status, body, headers } of others) {
        assert.deepEqual([status, body.code, body.remaining], [429, "quota_exceeded", { daily: 0, monthly: 900 }]);
        const retryAfter = Number(headers.get("retry-after"));
        assert.ok(retryAfter > 0 && retryAfter <= 86_400, `Retry-After is ${retryAfter}`);
      }
      await assertCounts(stage, { sessionId, total: 100 });
    });

    await t.step(
      "a larger plan counts soon, a bulk over it is refused whole, one that fits is taken",
      async () => {
        await setPlan(stage, ["--daily", "150"]);
        const refusal = await counted(() => sendBulk(51), ({ body }) => body.remaining.daily > 0);
        assert.deepEqual([refusal.status, refusal.body.code], [429, "quota_exceeded"]);
        assert.deepEqual(refusal.body.remaining, { daily: 50, monthly: 900 });
        await assertCounts(stage, { sessionId, total: 100 });
        const { total } = await accepted(sendBulk(50));
        assert.equal(total, 50);
        await assertCounts(stage, { sessionId, total: 150 });
      },
    );

    await t.step("the monthly quota bounds a bulk where the daily one does not", async () => {
      await setPlan(stage, ["--daily", "none", "--monthly", "200"]);
      const { headers, body } = await counted(
        () => sendBulk(51),
        ({ body }) => body.remaining.daily === null,
      );
      assert.deepEqual(body.remaining, { daily: null, monthly: 50 });
      const now = new Date();
      const nextMonth = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
      const wait = Number(headers.get("retry-after")) * 1_000;
      assert.ok(Math.abs(nextMonth - now.getTime() - wait) < 60_000, `Retry-After is ${wait} ms`);
      const taken = await sendBulk(50);
      assert.equal(taken.status, 202);
      assert.equal(taken.headers.get("x-quota-monthly-remaining"), "0");
      assert.equal(taken.headers.has("x-quota-daily-remaining"), false);
      await refused(sendText("one too many"), 429, "quota_exceeded");
      await assertCounts(stage, { sessionId, total: 200 });
    });

    await t.step("an account that is moved to another plan goes on under that one's limits", async () => {
      await runCommand(["account", "set-plan", stage.accountId, "business"], stage.env);
      const answer = await counted(() => sendText("on another plan"), ({ status }) => status === 202);
      assert.equal(answer.headers.get("x-quota-monthly-remaining"), String(200_000 - 201));
    });
  }));

Deno.test("the free plan allows one session and 100 messages a day", () =>
  withStage(() => openStage({ plan: PLAN }), async (stage) => {
    const created = JSON.parse(await runCommand(["account", "create", "--name", "free", "--json"], stage.env));
    assert.equal(created.plan, "free");
    const headers = { "x-api-key": created.apiKey };
    const create = (name: string) => post(stage, "/sessions", { json: { name }, headers });
    const [one, other] = await Promise.all([create("one"), create("other")]);
    const refusal = one.status === 201 ? other : one;
    assert.deepEqual([one.status, other.status].sort(), [201, 403]);
    assert.equal(refusal.body.code, "session_limit_reached");
    assert.match(refusal.body.detail, /1 session/);
    stage.secrets.add(created.apiKey);
  }));

/** History, queue and what is left of it agree on the count. */
async function assertCounts(stage: Stage, { sessionId, total }: { sessionId: string; total: number }): Promise<void> {
  const { pagination } = await stage.api.call("GET", "/messages/history");
  assert.equal(pagination.total, total);
  const queue: Json[] = (await stage.api.call("GET", `/sessions/${sessionId}/queue?limit=1000`)).data;
  assert.deepEqual(queue.map(({ position }) => position), downFrom(total, total).reverse());
}

/** The numbers in this header, largest first. */
function leftOf(answers: readonly ApiAnswer[], header: string): number[] {
  return answers.map(({ headers }) => Number(headers.get(header))).sort((a, b) => b - a);
}

function downFrom(largest: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => largest - i);
}

async function setPlan(stage: Stage, limits: readonly string[]): Promise<void> {
  const others = ["--sessions", "10", "--delay-min", "0", "--delay-max", "0"];
  await runCommand(["plan", "set", "staged", ...others, ...limits], stage.env);
}

function counted(ask: () => Promise<ApiAnswer>, holds: (answer: ApiAnswer) => boolean): Promise<ApiAnswer> {
  return until(async () => {
    const answer = await ask();
    return holds(answer) ? answer : null;
  }, "the plan to count");
}
