/**
 * Lines over months in minutes: the product's runner, queue and recorder on a store in memory, under a clock that jumps
 * from one event to the next. Every departure is held against what the plan promises by rules written anew here, with
 * the runtime's own calendar.
 */
import assert from "node:assert/strict";
import { parseHours } from "../../src/account/hours.ts";
import type { Plan } from "../../src/account/plan.ts";
import { keepHeard } from "../../src/line/chats.ts";
import { LINE_TOPIC } from "../../src/line/live.ts";
import type { Runner } from "../../src/line/runner/runner.ts";
import { EMPTY_LEDGER, lastPositionOf } from "../../src/message/history/ledger.ts";
import { type Ledger, messageKeys } from "../../src/message/rows.ts";
import { enqueue, positionAt, waitingSince } from "../../src/message/queue/place.ts";
import { chatOf, type Message, type Priority } from "../../src/message/message.ts";
import { Change } from "../../src/store/kv.ts";
import type { SendOutcome } from "../../src/whatsapp/outgoing.ts";
import { makeRunners } from "./bare_runner.ts";
import { testBell } from "./bell.ts";
import { FakeNetwork } from "./fake_network.ts";
import { MemoryKv } from "./memory_kv.ts";
import { seededRandom, settle, testRuntime } from "./runtime.ts";
import { aPlan } from "./send_world.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** Both clock changes lie in what follows: forward in New York and Madrid, back on Lord Howe, by half an hour. */
const START = Date.UTC(2026, 1, 15);
const OLDEST_AFTER_MS = 10 * MINUTE_MS;

const PLANS: readonly Plan[] = [
  aPlan({ name: "own", delayMinMs: 5_000, delayMaxMs: 15_000 }),
  aPlan({
    name: "office",
    delayMinMs: 5_000,
    delayMaxMs: 15_000,
    hours: parseHours("mon-fri 09:00-18:00 Europe/Madrid"),
  }),
  aPlan({
    name: "capped",
    delayMinMs: 2_000,
    delayMaxMs: 6_000,
    hours: parseHours("mon-sat 08:00-20:00 America/New_York"),
    newChatsDaily: 5,
  }),
  aPlan({ name: "warming", delayMinMs: 4_000, delayMaxMs: 10_000, warmUp: true, typingMs: 2_000 }),
  aPlan({
    name: "island",
    delayMinMs: 5_000,
    delayMaxMs: 15_000,
    hours: parseHours("mon-sun 01:30-16:00 Australia/Lord_Howe"),
    newChatsDaily: 12,
    warmUp: true,
  }),
];

export interface Simulated {
  departures: number;
  /** Departures that no message needed: an ack was lost, and it went again. */
  again: number;
  restarts: number;
  /** Days until the last message had left. */
  days: number;
  /** Longest wait of a message to a known chat, hours, by plan. */
  longestWaitHours: Record<string, number>;
}

interface SimulatedLine {
  id: string;
  plan: Plan;
  runner: Runner;
  /** Messages by network id. */
  messages: Map<string, Message>;
  /** When chats first wrote, by chat. */
  wrote: Map<string, number>;
}

/** Runs `messages` over `days` on `lines`, and checks all that left. Throws AssertionError. */
export async function simulate(
  { seed, days, lines: count, messages }: { seed: number; days: number; lines: number; messages: number },
): Promise<Simulated> {
  const runtime = testRuntime(seed);
  const { clock } = runtime;
  await clock.advance(START - clock.now());
  const random = seededRandom(seed + 1);
  const chance = (percent: number) => random.between(1, 1_000) <= percent * 10;
  const kv = new MemoryKv();
  const network = new FakeNetwork(clock);
  const bell = testBell(runtime);
  const startRunner = makeRunners({ kv, runtime, bell, network });
  network.outcome = ({ to }): SendOutcome =>
    chance(0.5) ? { kind: "unknown", detail: "the ack is lost" } : { kind: "sent", chat: to };

  const lines = new Map<string, SimulatedLine>();
  bell.hear(LINE_TOPIC, (topic) => lines.get(topic.slice(LINE_TOPIC.length))?.runner.wake());
  let restarts = -count;
  async function boot(line: Omit<SimulatedLine, "runner"> & { runner?: Runner }): Promise<SimulatedLine> {
    const stopped = line.runner?.stop();
    await clock.advance(0);
    await stopped;
    restarts++;
    const runner = await startRunner({ lineId: line.id, accountId: line.id, plan: line.plan });
    const booted = { ...line, runner };
    lines.set(line.id, booted);
    return booted;
  }
  for (let i = 0; i < count; i++) {
    await boot({ id: `ses_${i}`, plan: PLANS[i % PLANS.length]!, messages: new Map(), wrote: new Map() });
  }

  let accepted = 0;
  async function accept(line: SimulatedLine, fields: Pick<Message, "to" | "priority" | "sendAt">): Promise<void> {
    const now = clock.now();
    const historyNumber = ++accepted;
    const message: Message = {
      ...fields,
      id: runtime.ids.next("msg"),
      jobId: "job_1",
      accountId: line.id,
      sessionId: line.id,
      networkId: runtime.ids.network(),
      position: positionAt(fields.sendAt ?? now) + (fields.sendAt === null ? historyNumber : 0),
      historyNumber,
      content: { kind: "text", text: "hello" },
      bulkId: null,
      status: "queued",
      attempts: 0,
      error: null,
      createdAt: now,
      expiresAt: Infinity,
      sentAt: null,
      deliveredAt: null,
      readAt: null,
    };
    line.messages.set(message.networkId, message);
    const change = new Change();
    enqueue(change, [message]);
    const slot = await kv.get<Ledger>(messageKeys.ledger(line.id));
    const ledger = slot.value ?? EMPTY_LEDGER;
    change.set(slot.key, { ...ledger, lastPosition: lastPositionOf(ledger, [message]) });
    await kv.commit(change);
    line.runner.queueChanged();
  }

  const everyMs = days * DAY_MS / messages;
  const numberOf = (n: number) => String(34_600_000_000 + n);
  while (accepted < messages) {
    // One alone, or a burst such as a bulk makes.
    const burst = Math.min(messages - accepted, chance(1) ? random.between(20, 120) : random.between(1, 3));
    const line = lines.get(`ses_${random.between(0, count - 1)}`)!;
    // The farther in time, the more people have been written to.
    const people = 5 + Math.floor((clock.now() - START) / DAY_MS * 2);
    for (let i = 0; i < burst; i++) {
      const to = numberOf(random.between(1, people)) + (chance(10) ? "@s.whatsapp.net" : "");
      const priority: Priority = chance(10) ? "high" : chance(20) ? "low" : "normal";
      const sendAt = chance(8) ? clock.now() + random.between(1, 5 * DAY_MS) : null;
      await accept(line, { to, priority, sendAt });
    }
    if (chance(3)) {
      const number = numberOf(random.between(1, people));
      if (!line.wrote.has(number)) line.wrote.set(number, clock.now());
      const change = new Change();
      const timestamp = Math.floor(clock.now() / 1000);
      keepHeard(change, line.id, { chats: [number], at: timestamp * 1000 });
      await kv.commit(change);
      line.runner.heard({ chat: `${number}@s.whatsapp.net`, number, participant: null, timestamp });
    }
    if (chance(0.2)) await boot(line);
    await clock.advance(random.between(0, Math.round(2 * everyMs * burst)));
  }
  const waiting = () => messages - new Set(network.departures.map(({ networkId }) => networkId)).size;
  for (let day = 0; waiting() > 0 && day < 60; day++) await clock.advance(DAY_MS);
  await clock.advance(MINUTE_MS);
  assert.equal(waiting(), 0, `seed ${seed}: messages never left`);
  const longestWaitHours: Record<string, number> = {};
  for (const line of lines.values()) {
    const departures = network.departures.filter(({ lineId }) => lineId === line.id);
    const waited = checkLine(
      line,
      departures.map(({ at, networkId }) => ({ at, message: line.messages.get(networkId)! })),
      seed,
    );
    longestWaitHours[line.plan.name] = Math.max(longestWaitHours[line.plan.name] ?? 0, waited);
    const stopped = line.runner.stop();
    await settle();
    await stopped;
  }
  return {
    departures: network.departures.length,
    again: network.departures.length - messages,
    restarts,
    days: Math.ceil((network.departures.at(-1)!.at - START) / DAY_MS),
    longestWaitHours,
  };
}

interface Left {
  at: number;
  message: Message;
}

/** Resolves to the longest wait of a message to a known chat, hours. */
function checkLine({ id, plan, wrote }: SimulatedLine, departures: readonly Left[], seed: number): number {
  const where = (left: Left) => `seed ${seed}, ${id} (${plan.name}), ${new Date(left.at).toISOString()}`;
  const startedOn = new Map<string, number>();
  const known = new Set<string>();
  const last = new Map<string, number>();
  let longest = 0;
  departures.forEach((left, i) => {
    const { at, message } = left;
    const chat = chatOf(message.to);
    assert(at >= (message.sendAt ?? message.createdAt), `${where(left)}: before its time`);
    const before = departures[i - 1];
    if (before) {
      assert(at - before.at >= plan.delayMinMs, `${where(left)}: ${at - before.at} ms after the one before`);
      const hasWaited = waitingSince(message.position) < before.at;
      // Where neither hours nor new chats nor a lost ack hold anything up, the longest pause holds too.
      if (hasWaited && plan.name === "own" && before.message !== message) {
        assert(at - before.at <= plan.delayMaxMs, `${where(left)}: ${at - before.at} ms after the one before`);
      }
    }
    if (plan.hours) {
      const { day, time } = wallClock(plan.hours.timeZone, at);
      const { days, from, to } = plan.hours;
      assert(days.includes(day as never) && time >= from && time < to, `${where(left)}: ${day} ${time} is outside`);
    }
    // A chat keeps its order; the same message may go again.
    assert(message.position >= (last.get(chat) ?? 0), `${where(left)}: overtook in its chat`);
    last.set(chat, message.position);
    const isNew = !known.has(chat) && !((wrote.get(chat) ?? Infinity) <= at);
    known.add(chat);
    const limit = Math.min(plan.newChatsDaily ?? Infinity, plan.warmUp ? ramp(at - departures[0]!.at) : Infinity);
    if (isNew && limit < Infinity) {
      const { date } = wallClock(plan.hours?.timeZone ?? "UTC", at);
      startedOn.set(date, (startedOn.get(date) ?? 0) + 1);
      assert(startedOn.get(date)! <= limit, `${where(left)}: new chat ${startedOn.get(date)} of ${limit}`);
    }
    if (!isNew) longest = Math.max(longest, at - waitingSince(message.position));
  });
  if (plan.newChatsDaily === null && !plan.warmUp) checkStarvation(departures, where);
  return Math.round(longest / 3_600_000);
}

/** Of those that are younger, at most nine leave for each older one and for the message itself, once it waited so long. */
function checkStarvation(departures: readonly Left[], where: (left: Left) => string): void {
  departures.forEach((left, i) => {
    const since = waitingSince(left.message.position) + OLDEST_AFTER_MS;
    // A message that goes again has passed once.
    const [older, younger] = [new Set<Message>(), new Set<Message>()];
    for (let j = i - 1; j >= 0 && departures[j]!.at > since; j--) {
      const { message } = departures[j]!;
      (message.position < left.message.position ? older : younger).add(message);
    }
    const passed = `${younger.size} younger ones passed, ${older.size} older ones`;
    assert(younger.size <= 9 * (older.size + 2), `${where(left)}: ${passed}`);
  });
}

function ramp(ageMs: number): number {
  return [10, 20, 40, 80][Math.floor(ageMs / (7 * DAY_MS))] ?? Infinity;
}

const FORMATS = new Map<string, Intl.DateTimeFormat>();

/** What a clock on the wall there shows, by the runtime's own calendar. */
function wallClock(timeZone: string, at: number): { day: string; time: string; date: string } {
  let format = FORMATS.get(timeZone);
  if (!format) {
    const two = "2-digit" as const;
    const shown = { weekday: "short", hour: two, minute: two, year: "numeric", month: two, day: two } as const;
    FORMATS.set(timeZone, format = new Intl.DateTimeFormat("en-GB", { timeZone, hourCycle: "h23", ...shown }));
  }
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
  return {
    day: parts.weekday!.toLowerCase(),
    time: `${parts.hour}:${parts.minute}`,
    date: `${parts.year}-${parts.month}-${parts.day}`,
  };
}
