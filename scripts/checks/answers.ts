/**
 * A menu bot, reminders and verifications side by side on the sandbox, with `kill -9` now and then: every answer is one
 * `choice.made`, no reminder departs after its payment was answered, no code passes twice.
 *
 *     deno run -A scripts/checks/answers.ts [--minutes 60] [--kill-every 20]
 */
import assert from "node:assert/strict";
import { parseArgs } from "node:util";
import type { Json } from "../../src/cli/client.ts";
import { sleep, systemClock } from "../../src/runtime.ts";
import { openStage, type Stage } from "../../tests/support/stage.ts";

const { values: { minutes, "kill-every": killEvery } } = parseArgs({
  options: { minutes: { type: "string", default: "60" }, "kill-every": { type: "string", default: "20" } },
});
const LINE = "4915560000001";
const phoneOf = (flow: number, i: number) => `49175700${flow}${String(i).padStart(4, "0")}`;
/** People of each flow; each does one thing at a time. */
const PEOPLE = 3;
/** How long the gateway may be away, and what it says may be on its way. */
const PATIENCE_MS = 180_000;

const pause = (ms: number) => sleep(systemClock, ms);

async function patiently<T>(what: string, attempt: () => Promise<T | null | undefined | false>): Promise<T> {
  const end = systemClock.now() + PATIENCE_MS;
  for (let last: unknown = "nothing";;) {
    const found = await attempt().catch((error) => {
      last = error;
    });
    if (found) return found;
    if (systemClock.now() > end) throw new Error(`${what} did not come: ${last}`);
    await pause(200);
  }
}

/** Asks through crashes: a repeated POST has the same key. */
function ask(stage: Stage, method: string, path: string, json?: Json): Promise<Json> {
  const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
  const body = json ? { body: JSON.stringify(json) } : {};
  return patiently(`${method} ${path}`, async () => {
    const response = await stage.request(method, path, { headers, ...body });
    const answer = await response.json();
    if (!response.ok) throw new Error(JSON.stringify(answer));
    return answer;
  });
}

const says = (stage: Stage, from: string, text: string) =>
  stage.control.call("POST", `/phones/${from}/messages`, { to: LINE, text });

/** Reads the whole feed of one type. */
async function eventsOf(stage: Stage, type: string): Promise<Json[]> {
  const all: Json[] = [];
  for (let after = ""; after !== null;) {
    const { data, next } = await ask(stage, "GET", `/events?types=${type}&limit=100${after && `&after=${after}`}`);
    all.push(...data);
    after = data.length === 0 ? null : next;
  }
  return all;
}

const stage = await openStage();
const counts = { answers: 0, reminders: 0, cancelled: 0, sent: 0, codes: 0, kills: 0 };
const asked: string[] = [];
const opened: string[] = [];
const end = systemClock.now() + Number(minutes) * 60_000;
const goesOn = () => systemClock.now() < end;

async function menu(person: string): Promise<void> {
  for (let i = 0; goesOn(); i++) {
    const text = `Tea or coffee, ${person}, round ${i}?`;
    const options = [{ id: "tea", label: "Tea" }, { id: "coffee", label: "Coffee" }];
    const { messageId } = await ask(stage, "POST", "/messages/send/choices", { to: person, text, options });
    await patiently(text, async () => {
      if ((await stage.inbox(person)).some((m) => m.text?.startsWith(text))) return true;
      throw new Error(JSON.stringify(await ask(stage, "GET", `/messages/${messageId}`)));
    });
    await says(stage, person, i % 2 ? "2" : "tea");
    asked.push(messageId);
    counts.answers++;
    await pause(500);
  }
}

async function reminders(person: string): Promise<void> {
  for (let i = 0; goesOn(); i++) {
    const tags = [`invoice-${person}-${i}`];
    const ids: string[] = [];
    for (const after of [30_000, 31_000, 32_000]) {
      const sendAt = new Date(systemClock.now() + after).toISOString();
      ids.push(
        (await ask(stage, "POST", "/messages/send/text", { to: person, text: "due", sendAt, tags })).messageId,
      );
    }
    await pause(28_500 + Math.floor((3_500 * (i % 5)) / 5));
    const { data } = await ask(stage, "DELETE", `/messages?tag=${tags[0]}`);
    const paidAt = systemClock.now();
    counts.cancelled += data.cancelled;
    for (const id of ids) {
      const { data: record } = await patiently(`the end of ${id}`, async () => {
        const found = await ask(stage, "GET", `/messages/${id}`);
        return ["sent", "failed"].includes(found.data.status) && found;
      });
      counts.reminders++;
      if (record.status !== "sent") continue;
      counts.sent++;
      const departed = record.life.find(({ status }: Json) => status === "processing").at;
      assert.ok(
        Date.parse(departed) <= paidAt,
        `${id} departed ${Date.parse(departed) - paidAt} ms after the payment`,
      );
    }
  }
}

async function verify(i: number): Promise<void> {
  const [person, other] = [phoneOf(2, i), phoneOf(2, (i + 1) % PEOPLE)];
  while (goesOn()) {
    const { data } = await ask(stage, "POST", "/verifications", {});
    await Promise.all([says(stage, person, data.code), says(stage, other, data.code.toLowerCase())]);
    await patiently(
      "the end of a verification",
      async () => (await ask(stage, "GET", `/verifications/${data.id}`)).data.status === "passed",
    );
    opened.push(data.id);
    counts.codes++;
    await pause(500);
  }
}

async function kill(): Promise<void> {
  while (goesOn()) {
    await pause(Number(killEvery) * 1000);
    await stage.gateway.kill();
    await stage.gateway.start();
    counts.kills++;
  }
}

try {
  for (const flow of [0, 1, 2]) for (let i = 0; i < PEOPLE; i++) await stage.addPhone(phoneOf(flow, i));
  await stage.linkLine(LINE);
  const people = Array.from({ length: PEOPLE }, (_, i) => i);
  await Promise.all([
    ...people.flatMap((i) => [menu(phoneOf(0, i)), reminders(phoneOf(1, i)), verify(i)]),
    kill(),
  ]);
  await pause(2_000);
  const made = await patiently("the last answers", async () => {
    const events = await eventsOf(stage, "choice.made");
    return new Set(events.map(({ data }) => data.messageId)).size >= asked.length && events;
  });
  assert.deepEqual(made.map(({ data }) => data.messageId).sort(), asked.sort(), "one event an answer");
  const passed = await eventsOf(stage, "verification.passed");
  assert.deepEqual(passed.map(({ data }) => data.id).sort(), opened.sort(), "one event a code");
  console.log(JSON.stringify(counts));
} finally {
  await stage.abandon();
}
