/** The history on the whole product: pages, filters and totals that stay true while messages leave. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { accepted, answerOf, post, refused } from "../support/api_calls.ts";
import { runCommand } from "../support/gateway_process.ts";
import { sampleFile } from "../support/sample_files.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915558000001";
const CUSTOMER = "4917558000001";
const NOBODY = "4917559999999";
const COUNT = 230;
/** Of these, to a number that is not on WhatsApp. */
const LOST = 7;
const CANCELLED = 3;
const DAY_MS = 24 * 60 * 60 * 1000;

Deno.test("any page of the history can be read, and totals are true while messages leave", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    const line = await stage.linkLine(LINE);
    const { sessionId } = line;
    await stage.api.call("POST", `/sessions/${sessionId}/disconnect`);
    const messages = Array.from({ length: COUNT }, (_, i) => ({
      to: i % 30 === 29 ? NOBODY : CUSTOMER,
      text: `history text ${i}`,
    }));
    const bulk = await accepted(post(stage, "/messages/send/bulk", { json: { sessionId, messages } }));
    const newestFirst: string[] = bulk.messages.map(({ messageId }: Json) => messageId).reverse();

    await t.step("pages of any size hold every message once, newest first", async () => {
      for (const limit of [100, 20, 7]) assert.deepEqual(await allIds(stage, { limit }), newestFirst);
      assert.deepEqual(await page(stage, ""), { page: 1, limit: 20, total: COUNT, ids: newestFirst.slice(0, 20) });
      assert.deepEqual(await page(stage, "page=1000000&limit=100"), {
        page: 1_000_000,
        limit: 100,
        total: COUNT,
        ids: [],
      });
    });

    await t.step("days are whole UTC days, both included", async () => {
      const today = dayOf(systemClock.now());
      const [yesterday, tomorrow] = [dayOf(systemClock.now() - DAY_MS), dayOf(systemClock.now() + DAY_MS)];
      const totals = [];
      for (
        const range of [`from=${today}`, `to=${today}`, `from=${today}&to=${today}`, `from=${yesterday}&to=${tomorrow}`]
      ) totals.push((await page(stage, range)).total);
      assert.deepEqual(totals, [COUNT, COUNT, COUNT, COUNT]);
      for (const range of [`from=${tomorrow}`, `to=${yesterday}`, `from=${tomorrow}&to=${yesterday}`]) {
        assert.deepEqual(await page(stage, range), { page: 1, limit: 20, total: 0, ids: [] });
      }
    });

    await t.step("session, recipient, type and bulk choose, alone and together", async () => {
      const toNobody = newestFirst.filter((_, i) => (COUNT - 1 - i) % 30 === 29);
      const { ids, total } = await page(stage, `recipient=${NOBODY}@s.whatsapp.net&limit=100`);
      assert.deepEqual([ids, total], [toNobody, LOST]);
      const all = `sessionId=${sessionId}&type=text&bulkId=${bulk.bulkId}&status=queued&from=2020-01-01`;
      assert.equal((await page(stage, all)).total, COUNT);
      assert.equal((await page(stage, `${all}&recipient=${NOBODY}`)).total, LOST);
      for (
        const none of [`${all}&type=poll`.replace("type=text&", ""), "recipient=4917550000000", `${all}&to=2020-01-02`]
      ) {
        assert.equal((await page(stage, none)).total, 0, none);
      }
    });

    for (
      const [query, path] of [
        ["limit=0", "limit"],
        ["limit=101", "limit"],
        ["limit=ten", "limit"],
        ["page=0", "page"],
        ["page=-1", "page"],
        ["status=delivered", "status"],
        ["from=2026-02-30", "from"],
        ["to=yesterday", "to"],
        ["from=2026-01-01T00:00:00Z", "from"],
      ]
    ) {
      await t.step(`${query} is refused`, async () => {
        const { body } = await refused(
          answerOf(stage.request("GET", `/messages/history?${query}`)),
          400,
          "validation_failed",
        );
        assert.equal(body.errors[0].path, path);
      });
    }

    await t.step("while messages leave, no page lies", async () => {
      for (const id of newestFirst.slice(0, CANCELLED)) await stage.api.call("DELETE", `/messages/${id}`);
      // Nothing is acknowledged before the pages were read once.
      await stage.control.call("POST", "/faults", { line: LINE, kind: "hold_acks", seconds: 600 });
      await stage.api.call("POST", `/sessions/${sessionId}/reconnect`);
      await until(async () => (await page(stage, "status=processing")).total === 1, "the first to leave");
      await until(async () => {
        assert.equal((await page(stage, "limit=1")).total, COUNT);
        assert.equal((await page(stage, `recipient=${NOBODY}`)).total, LOST);
        for (const status of ["queued", "sent", "failed"]) {
          const { data } = await stage.api.call("GET", `/messages/history?status=${status}&limit=100`);
          for (const item of data) assert.equal(item.status, status);
          const places = data.map(({ messageId }: Json) => newestFirst.indexOf(messageId));
          assert.deepEqual(places, places.toSorted((a: number, b: number) => a - b));
        }
        await stage.control.call("DELETE", `/faults/${LINE}`);
        return (await page(stage, "status=queued")).total + (await page(stage, "status=processing")).total === 0 ||
          null;
      }, "every message to end");
      assert.equal((await page(stage, "status=failed")).total, LOST + CANCELLED);
      assert.equal((await page(stage, "status=sent")).total, COUNT - LOST - CANCELLED);
      const lost = (await page(stage, `recipient=${NOBODY}&status=failed&sessionId=${sessionId}`)).total;
      assert.equal(lost, LOST);
      const [sent, failed] = [
        await allIds(stage, { limit: 9, status: "sent" }),
        await allIds(stage, { limit: 9, status: "failed" }),
      ];
      assert.deepEqual([...sent, ...failed].sort(), newestFirst.toSorted());
      const order = newestFirst.filter((id) => sent.includes(id));
      assert.deepEqual(sent, order);
    });

    await t.step("an item says all that is known of its message", async () => {
      const json = {
        to: CUSTOMER,
        file: sampleFile("pdf").toString("base64"),
        filename: "a.pdf",
        caption: "the invoice",
      };
      const { messageId, jobId } = await accepted(post(stage, "/messages/send/document", { json }));
      const arrived = await stage.arrival(CUSTOMER, (message) => message.filename === "a.pdf");
      await stage.control.call("POST", `/phones/${CUSTOMER}/read`, { id: arrived.id });
      const item = await until(async () => {
        const { data: [newest] } = await stage.api.call("GET", "/messages/history?limit=1");
        return newest.readAt === null ? null : newest;
      }, "the message to be read");
      const { createdAt, sentAt, deliveredAt, readAt, ...rest } = item;
      assert.deepEqual(rest, {
        messageId,
        jobId,
        sessionId,
        to: CUSTOMER,
        type: "document",
        text: null,
        caption: "the invoice",
        filename: "a.pdf",
        details: null,
        status: "sent",
        error: null,
        priority: "normal",
        tags: [],
        sendAt: null,
      });
      for (const time of [createdAt, sentAt, deliveredAt, readAt]) assert.match(time, /^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/);
      assert.ok(createdAt <= sentAt && sentAt <= readAt);
      assert.deepEqual(await stage.api.call("GET", `/messages/${messageId}/status`), {
        messageId,
        status: "sent",
        sentAt,
        error: null,
      });
    });

    await t.step("another account sees none of it", async () => {
      const other = JSON.parse(await runCommand(["account", "create", "--name", "other", "--json"], stage.env));
      stage.secrets.add(other.apiKey);
      const ask = (path: string) => answerOf(stage.request("GET", path, { headers: { "x-api-key": other.apiKey } }));
      const { body } = await ask("/messages/history");
      assert.deepEqual(body, { data: [], pagination: { page: 1, limit: 20, total: 0 } });
      await refused(ask(`/messages/${newestFirst[0]}/status`), 404, "not_found");
    });
  }));

async function page(stage: Stage, query: string) {
  const { data, pagination } = await stage.api.call("GET", `/messages/history?${query}`);
  return { ...pagination, ids: data.map(({ messageId }: Json) => messageId) };
}

async function allIds(stage: Stage, query: { limit: number; status?: string }): Promise<string[]> {
  const all: string[] = [];
  for (let number = 1;; number++) {
    const status = query.status ? `&status=${query.status}` : "";
    const { ids } = await page(stage, `limit=${query.limit}&page=${number}${status}`);
    all.push(...ids);
    if (ids.length < query.limit) return all;
  }
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
