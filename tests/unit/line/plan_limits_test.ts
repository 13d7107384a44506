/** What a plan holds back: hours, new chats, the first weeks of a line, "typing"; and that who asks is told. */
import assert from "node:assert/strict";
import type { Plan } from "../../../src/account/plan.ts";
import { parseHours } from "../../../src/account/hours.ts";
import type { Message } from "../../../src/message/message.ts";
import { newChatsOf, NO_DEPARTURE } from "../../../src/line/runner/pacing.ts";
import { messageKeys } from "../../../src/message/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { aPlan } from "../../support/send_world.ts";
import { ACCOUNT, connectedWorld, type World } from "../../support/line_world.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const PACED = { delays: { minMs: 10_000, maxMs: 10_000 }, isShared: false };

const PATIENT = { expiresAt: Infinity };

const to = (n: number) => `346000001${String(n).padStart(2, "0")}`;

/** Waits until this time of day (UTC), today or tomorrow. */
async function untilUtc(world: World, hour: number): Promise<void> {
  const next = Math.floor(world.clock.now() / DAY_MS) * DAY_MS + hour * HOUR_MS;
  await world.clock.advance(next > world.clock.now() ? next - world.clock.now() : next + DAY_MS - world.clock.now());
}

const leftTo = (world: World) => world.network.departures.map((departure) => departure.to);

const views = (world: World) => {
  const { forecast } = world;
  return {
    queue: () => forecast.queue(ACCOUNT, "ses_1", { limit: 100 }),
    waits: async (...messages: Message[]) => {
      const now = await Promise.all(messages.map(({ id }) => world.message(id)));
      const found = await forecast.waits(now);
      return messages.map(({ id }) => found.get(id) ?? null);
    },
    bulk: (id: string) => forecast.bulk(ACCOUNT, id),
  };
};

Deno.test("nothing leaves outside of a plan's hours, and what waits says until when", async () => {
  const world = await connectedWorld(PACED);
  world.plan = { ...world.plan, hours: parseHours("mon-sun 09:00-18:00 UTC") };
  await untilUtc(world, 17);
  await world.clock.advance(HOUR_MS - 15_000);
  const messages = [];
  for (let i = 1; i <= 4; i++) messages.push(await world.accept("ses_1", { to: to(i) }));
  await world.clock.advance(10 * MINUTE_MS);
  assert.deepEqual(leftTo(world), [to(1), to(2)], "the second is the last before closing time");
  const opensAt = Math.floor(world.clock.now() / DAY_MS) * DAY_MS + DAY_MS + 9 * HOUR_MS;
  const hours = { kind: "hours", until: opensAt };
  const { queue, waits } = views(world);
  assert.deepEqual((await queue()).map(({ waitsFor, estimatedDepartureAt }) => [waitsFor, estimatedDepartureAt]), [
    [hours, opensAt],
    [hours, opensAt + 10_000],
  ]);
  assert.deepEqual(await waits(...messages), [null, null, hours, hours]);
  assert.deepEqual((await load(world)).waitsFor, hours);

  await world.clock.advance(opensAt - world.clock.now() - 1);
  assert.equal(leftTo(world).length, 2);
  await world.clock.advance(1);
  assert.equal(world.network.departures[2]!.at, opensAt, "the bell rings at that time");
  await world.clock.advance(10_000);
  assert.equal(leftTo(world).length, 4);
  assert.equal((await load(world)).waitsFor, null);
  await world.supervisor.stop();
});

Deno.test("what expires before the hours begin ends as expired, and a plan that lifts them is followed", async () => {
  const world = await connectedWorld(PACED);
  world.plan = { ...world.plan, hours: parseHours("mon-sun 09:00-18:00 UTC") };
  await untilUtc(world, 20);
  const late = await world.accept("ses_1", { expiresAt: world.clock.now() + HOUR_MS });
  const waiting = await world.accept();
  await world.clock.advance(2 * HOUR_MS);
  assert.equal((await world.message(late.id)).error?.code, "expired");
  world.plan = { ...world.plan, hours: null };
  await world.clock.advance(15_000);
  assert.equal((await world.message(waiting.id)).status, "sent");
  await world.supervisor.stop();
});

Deno.test("a line starts so many new chats a day, restarts included; replies, known chats and groups pass them", async () => {
  const world = await connectedWorld(PACED);
  world.plan = { ...world.plan, newChatsDaily: 2 };
  await untilUtc(world, 10);
  const fresh = [];
  for (let i = 1; i <= 5; i++) fresh.push(await world.accept("ses_1", { to: to(i), ...PATIENT }));
  await world.accept("ses_1", { to: "120363025246125486@g.us" });
  await world.accept("ses_1", { to: to(1) });
  await world.clock.advance(MINUTE_MS);
  await world.supervisor.stop();
  await world.boot();
  await world.clock.advance(HOUR_MS);
  assert.deepEqual(leftTo(world), [to(1), to(2), "120363025246125486@g.us", to(1)]);

  const midnight = Math.floor(world.clock.now() / DAY_MS) * DAY_MS + DAY_MS;
  const held = { kind: "new_chats", until: midnight };
  const { queue, waits } = views(world);
  assert.deepEqual((await queue()).map(({ waitsFor }) => waitsFor), [held, held, held]);
  assert.deepEqual((await queue()).map(({ estimatedDepartureAt }) => estimatedDepartureAt), [
    midnight,
    midnight,
    midnight + DAY_MS,
  ]);
  assert.deepEqual(await waits(fresh[1]!, fresh[2]!), [null, held]);
  assert.deepEqual((await load(world)).newChats, { used: 2, limit: 2, resetsAt: midnight });

  await world.clock.advance(midnight - world.clock.now() + MINUTE_MS);
  assert.deepEqual(leftTo(world).slice(4), [to(3), to(4)], "the bell rings at midnight");
  await world.clock.advance(DAY_MS);
  assert.deepEqual(leftTo(world).slice(6), [to(5)]);
  await world.supervisor.stop();
});

Deno.test("a chat that was started is new no longer: what else waits for it need not wait for another day", async () => {
  const world = await connectedWorld(PACED);
  world.plan = { ...world.plan, newChatsDaily: 1 };
  await untilUtc(world, 10);
  await world.accept("ses_1", { to: to(1) });
  await world.clock.advance(MINUTE_MS);
  for (const n of [2, 3, 2, 3]) await world.accept("ses_1", { to: to(n), ...PATIENT });
  await world.clock.advance(MINUTE_MS);
  assert.deepEqual(leftTo(world), [to(1)]);
  await untilUtc(world, 1);
  assert.deepEqual(leftTo(world).slice(1), [to(2), to(2)]);
  await untilUtc(world, 1);
  assert.deepEqual(leftTo(world).slice(3), [to(3), to(3)]);
  await world.supervisor.stop();
});

Deno.test("an attempt that did not reach the network counts as no new chat; one that was refused does", async () => {
  const world = await connectedWorld(PACED);
  world.plan = { ...world.plan, newChatsDaily: 1 };
  await untilUtc(world, 10);
  let holds = 2;
  world.network.outcome = ({ to }) => holds-- > 0 ? { kind: "hold", detail: "offline" } : { kind: "sent", chat: to };
  const { id } = await world.accept("ses_1", { to: to(1) });
  await world.clock.advance(MINUTE_MS);
  assert.equal((await world.message(id)).status, "sent");
  assert.equal((await load(world)).newChats?.used, 1);

  await untilUtc(world, 1);
  world.network.outcome = () => ({ kind: "refused", code: "number_not_registered", detail: "nobody" });
  const refused = await world.accept("ses_1", { to: to(2) });
  const next = await world.accept("ses_1", { to: to(3) });
  await world.clock.advance(MINUTE_MS);
  assert.deepEqual([(await world.message(refused.id)).status, (await world.message(next.id)).status], [
    "failed",
    "queued",
  ]);
  await world.supervisor.stop();
});

Deno.test("a line that is warmed up starts 10, 20, 40 and 80 new chats a day in its first weeks, then what the plan allows", () => {
  const firstDepartureAt = Date.parse("2026-01-01T12:00:00Z");
  const limitIn = (days: number, plan: Partial<Plan>) =>
    newChatsOf(aPlan(plan), { ...NO_DEPARTURE, firstDepartureAt }, firstDepartureAt + days * DAY_MS)?.limit ?? null;
  const weeks = [0, 6.9, 7, 14, 21, 28, 365];
  assert.deepEqual(weeks.map((days) => limitIn(days, { warmUp: true })), [10, 10, 20, 40, 80, null, null]);
  const both = { warmUp: true, newChatsDaily: 60 };
  assert.deepEqual(weeks.map((days) => limitIn(days, both)), [10, 10, 20, 40, 60, 60, 60]);
  assert.equal(newChatsOf(aPlan({ warmUp: true }), null, firstDepartureAt)?.limit, 10, "before the first departure");
});

Deno.test("a line that is linked to another number starts its warm-up and its chats anew; the same number goes on", async () => {
  const world = await connectedWorld(PACED);
  world.plan = { ...world.plan, warmUp: true };
  await untilUtc(world, 1);
  const send = async (n: number) => {
    await world.accept("ses_1", { to: to(n) });
    await world.clock.advance(MINUTE_MS);
  };
  const linkAnew = async () => {
    world.network.linked.delete("ses_1");
    world.network.of("ses_1").ends("logged_out", 401);
    await world.clock.advance(MINUTE_MS);
    const asked = world.lines.want(ACCOUNT, "ses_1", "connected");
    await world.clock.advance(10);
    world.network.of("ses_1").links();
    await world.clock.advance(10_000);
    assert.equal((await asked).status, "connected");
  };
  await send(1);
  await world.clock.advance(8 * DAY_MS);
  await send(2);
  const limits = async () => {
    const { used, limit } = (await load(world)).newChats!;
    return { used, limit };
  };
  assert.deepEqual(await limits(), { used: 1, limit: 20 });
  await linkAnew();
  await send(1);
  assert.deepEqual(await limits(), { used: 1, limit: 20 }, "the same number knows the chat");

  world.network.owner = { ...world.network.owner, phone: "34600000009" };
  await linkAnew();
  assert.deepEqual(await limits(), { used: 0, limit: 10 });
  await send(1);
  assert.deepEqual(await limits(), { used: 1, limit: 10 }, "the chat is new to this number");
  assert.equal((await world.line()).phone, "34600000009");
  await world.supervisor.stop();
});

Deno.test("a plan's typing is shown before each message that does not say so itself, but not before a reaction", async () => {
  const world = await connectedWorld({ delays: { minMs: 5_000, maxMs: 5_000 } });
  world.plan = { ...world.plan, typingMs: 2_000 };
  const messages = [
    await world.accept("ses_1"),
    await world.accept("ses_1", { manner: { typingMs: 1_000 } }),
    await world.accept("ses_1", { manner: { typingMs: 0 } }),
    await world.accept("ses_1", {
      content: { kind: "reaction", target: { id: "A", fromMe: false }, emoji: "👍" } as never,
    }),
  ];
  await world.clock.advance(MINUTE_MS);
  const shownFor = messages.map(({ networkId }) => {
    const typed = world.network.typed.find((shown) => shown.networkId === networkId);
    return typed ? world.network.departures.find((left) => left.networkId === networkId)!.at - typed.at : null;
  });
  assert.deepEqual(shownFor, [2_000, 1_000, null, null]);
  await world.supervisor.stop();
});

Deno.test("the ETA of a bulk knows of hours and of new chats", async () => {
  const world = await connectedWorld(PACED);
  world.plan = { ...world.plan, newChatsDaily: 2, hours: parseHours("mon-sun 09:00-18:00 UTC") };
  await untilUtc(world, 20);
  const bulkId = "blk_1";
  const messages = [];
  for (let i = 0; i < 5; i++) messages.push(await world.accept("ses_1", { to: to(i), bulkId, ...PATIENT }));
  const bulk = { accountId: ACCOUNT, sessionId: "ses_1", total: 5, firstHistoryNumber: messages[0]!.historyNumber };
  await world.kv.commit(new Change().set(messageKeys.bulk(bulkId), { ...bulk, createdAt: world.clock.now() }));
  const { etaAt } = await views(world).bulk(bulkId);
  const midnight = Math.floor(world.clock.now() / DAY_MS) * DAY_MS + DAY_MS;
  // Two tomorrow, two the day after, the last a day later.
  assert.equal(etaAt, midnight + 2 * DAY_MS + 9 * HOUR_MS);
  await world.clock.advance(etaAt! - world.clock.now() + MINUTE_MS);
  assert.equal(world.network.departures.at(-1)!.at, etaAt);
  assert.equal(leftTo(world).length, 5);
  await world.supervisor.stop();
});

const load = (world: World) => world.forecast.load(ACCOUNT, "ses_1");
