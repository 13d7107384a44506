/**
 * Processes with clocks of their own accept, approve, move, edit and cancel messages while lines send, each between the store
 * calls of the others; processes die, and commits are written without an answer. Whatever happens, every departure
 * keeps the rules of the queue (`QueueModel`), every accepted message has one end, and no row stays behind.
 */
import { chatsOn } from "../../support/chats.ts";
import assert from "node:assert/strict";
import type { Caller } from "../../../src/account/account.ts";
import { Idempotency } from "../../../src/account/idempotency.ts";
import { Problem } from "../../../src/errors.ts";
import { eventKeys } from "../../../src/event/rows.ts";
import { makeAmendments } from "../../../src/line/amendments.ts";
import { keepHeard, laneOf } from "../../../src/line/chats.ts";
import { LINE_TOPIC } from "../../../src/line/live.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import type { Runner } from "../../../src/line/runner/runner.ts";
import { makeAccept } from "../../../src/message/accept.ts";
import { finishBulks, makeSweepStaged } from "../../../src/message/bulk.ts";
import { makeQueuedCount, settleAllRefunds } from "../../../src/message/history/counts.ts";
import { hasEnded, isProposed, type Message, PRIORITIES } from "../../../src/message/message.ts";
import { expireMessages } from "../../../src/message/queue/across_lines.ts";
import { makeQueued } from "../../../src/message/queue_changes.ts";
import { Recorder } from "../../../src/message/record.ts";
import { type Ledger, messageKeys } from "../../../src/message/rows.ts";
import type { SendCommand } from "../../../src/message/send_command.ts";
import { QUEUE_TOPIC, ringQueue } from "../../../src/message/queue/place.ts";
import { Change, type Kv, StoreError } from "../../../src/store/kv.ts";
import { NetworkRefusal } from "../../../src/whatsapp/connection.ts";
import type { SendOutcome } from "../../../src/whatsapp/outgoing.ts";
import { makeRunners } from "../../support/bare_runner.ts";
import { testBell, testEvents } from "../../support/bell.ts";
import { FakeNetwork } from "../../support/fake_network.ts";
import { SEAL } from "../../support/line_world.ts";
import { MemoryDisk, MemoryKv } from "../../support/memory_kv.ts";
import { QueueModel } from "../../support/queue_model.ts";
import { confirmedBy, ManualClock, seededRandom, testRuntime } from "../../support/runtime.ts";
import { aCaller, aLine, aPlan, aSend, keysUnder } from "../../support/send_world.ts";

const ACCOUNT = "acc_1";
const DAY_MS = 24 * 3_600_000;
const MOST_AHEAD_MS = 1_500;
/** One line sends without pauses, one with, and one has to hold back chats until the next day. */
const PLANS = new Map([
  ["ses_1", aPlan()],
  ["ses_2", aPlan({ delayMinMs: 20, delayMaxMs: 200 })],
  ["ses_3", aPlan({ newChatsDaily: 2 })],
]);
const LINES = [...PLANS.keys()];
const OPERATIONS = 500;
/** A bulk of `LARGE` messages with this text does not fit into one commit. */
const LONG = "long ".repeat(5_000);
const LARGE = 12;
/** A key that only proposes. */
const AGENT: Caller["key"] = { id: "key_1", name: "agent", scopes: ["propose"], allowedIps: [], allowedDomains: [] };

interface Worker {
  memory: MemoryKv;
  kv: Kv;
  runner: Runner;
}

async function run(seed: number): Promise<void> {
  const clock = new ManualClock();
  const random = seededRandom(seed);
  const chance = (percent: number) => random.between(1, 100) <= percent;
  const oneOf = <T>(all: readonly T[]): T => all[random.between(0, all.length - 1)]!;
  const disk = new MemoryDisk();
  const model = new QueueModel(() => clock.now(), { mostAheadMs: MOST_AHEAD_MS, holdsBack: (id) => id === "ses_3" });
  const network = new FakeNetwork(clock);
  const logs: Record<string, unknown>[][] = [];
  const faults: unknown[] = [];
  const running = new Set<Promise<void>>();
  let operationsLeft = OPERATIONS;

  /** Runs the work beside everything else; a refusal is an answer, and no fault. */
  function start(work: () => Promise<unknown>): void {
    async function finish(): Promise<void> {
      try {
        await work();
      } catch (error) {
        const isAnswer = error instanceof Problem || error instanceof StoreError || error instanceof NetworkRefusal;
        if (!isAnswer) faults.push(error);
      }
      running.delete(done);
    }
    const done = finish();
    running.add(done);
  }

  /** Lets the others do some steps. */
  async function pause(most: number): Promise<void> {
    for (let i = random.between(0, most); i > 0; i--) await Promise.resolve();
  }

  /** A process with a clock of its own; between its calls to the store, others do something. */
  function makeProcess() {
    const aheadMs = oneOf([-MOST_AHEAD_MS, 0, MOST_AHEAD_MS]);
    const own = testRuntime(random.between(1, 2 ** 30), clock);
    logs.push(own.lines);
    const skewed = { now: () => clock.now() + aheadMs, after: clock.after.bind(clock) };
    const runtime = { ...own, clock: skewed, confirmed: confirmedBy(skewed) };
    const memory = new MemoryKv(disk);
    memory.committed = (change) => {
      try {
        model.committed(change, aheadMs);
      } catch (error) {
        faults.push(error);
      }
    };
    async function others(): Promise<void> {
      if (operationsLeft > 0 && chance(4)) {
        operationsLeft--;
        start(operation);
      }
      await pause(8);
    }
    const kv: Kv = {
      ...memory,
      async get(key) {
        await others();
        return await memory.get(key);
      },
      async getMany(keys) {
        await others();
        return await memory.getMany(keys);
      },
      async *list(range, options) {
        await others();
        yield* memory.list(range, options);
      },
      async commit(change) {
        await others();
        const version = await memory.commit(change);
        await others();
        if (operationsLeft <= 0 || !chance(1)) return version;
        // Nobody is told of what was written; the supervisor finds it.
        for (const lineId of LINES) ringQueue(slowBell, lineId);
        throw new StoreError("unavailable", "the answer was lost");
      },
    };
    return { kv, memory, runtime };
  }

  function makeApi() {
    const { kv, memory, runtime } = makeProcess();
    const sessionName = () => Promise.resolve("");
    const files = { remove: () => Promise.resolve() };
    const events = testEvents(kv, runtime);
    const recorder = new Recorder({
      kv,
      chats: chatsOn(kv),
      runtime,
      events,
      files,
      sessionName,
    });
    const deps = { kv, runtime, recorder, bell: slowBell };
    const unsent: SendOutcome = { kind: "hold", detail: "not connected" };
    const live = { deliver: () => Promise.resolve(unsent), connection: () => null };
    const idempotency = new Idempotency({ kv, runtime, seal: SEAL, isShared: true });
    const laneOfChat = (lineId: string, chat: string) => laneOf(kv, lineId, { chat, now: runtime.clock.now() });
    return {
      ...deps,
      memory,
      events,
      accept: makeAccept({ ...deps, events, sessionName, idempotency }),
      amendments: makeAmendments({ ...deps, live }),
      queued: makeQueued({ ...deps, clock: runtime.clock, laneOf: laneOfChat }),
    };
  }

  const workers = new Map<string, Worker>();
  const moving = new Set<string>();

  /** Tells the line's process, which hears of it some steps later. */
  const slowBell = {
    ring(topic: string) {
      start(async () => {
        await pause(chance(70) ? 10 : 400);
        workers.get(topic.slice(QUEUE_TOPIC.length))?.runner.queueChanged();
      });
    },
  };

  /** Moves the line to a new process, after its old one has stopped or died. */
  async function move(lineId: string, how: "stops" | "dies"): Promise<void> {
    if (moving.has(lineId)) return;
    moving.add(lineId);
    const old = workers.get(lineId);
    if (old && how === "dies") {
      old.memory.commitsLeft = -1;
      Object.assign(network.of(lineId), { isOpen: false, isClosed: true });
      void old.runner.stop();
    } else await old?.runner.stop();
    const { kv, memory, runtime } = makeProcess();
    const bell = testBell(runtime);
    const plan = PLANS.get(lineId)!;
    const runner = await makeRunners({ kv, runtime, bell, network })({ lineId, accountId: ACCOUNT, plan });
    bell.hear(LINE_TOPIC, () => runner.wake());
    workers.set(lineId, { kv, memory, runner });
    moving.delete(lineId);
  }

  const apis = [makeApi(), makeApi()];
  const number = () => `3460000000${random.between(1, 4)}`;
  /** A time on this clock that others are likely to choose too. */
  const soon = (now: number) => Math.ceil((now + random.between(0, 2_000)) / 500) * 500;

  /** Sends one message or a bulk; under an Idempotency-Key in both processes at once, until both have an answer. */
  async function send(): Promise<void> {
    const place = random.between(0, 1);
    const { now } = apis[place]!.runtime.clock;
    const bulk = chance(15);
    const isLarge = bulk && chance(60);
    const command: SendCommand = aSend({
      caller: chance(20) && !isLarge ? { ...aCaller(), key: AGENT } : aCaller(),
      line: aLine(oneOf(LINES)),
      items: Array.from({ length: isLarge ? LARGE : bulk ? random.between(1, LARGE) : 1 }, () => ({
        to: number() + (chance(20) ? "@s.whatsapp.net" : ""),
        content: { kind: "text", text: isLarge ? LONG : "first" },
      })),
      bulk,
      priority: oneOf(PRIORITIES),
      sendAt: chance(40) ? soon(now()) : null,
      ttlMs: chance(5) ? random.between(1, 3_000) : DAY_MS,
      idempotency: chance(30) ? { key: `key ${operationsLeft}`, fingerprint: "the same" } : null,
    });
    if (!command.idempotency) return void await apis[place]!.accept(command);
    const [one, other] = await Promise.all([0, 1].map(async (place) => {
      for (;;) {
        try {
          return (await apis[place]!.accept(command)).messages.map(({ id }) => id);
        } catch (error) {
          if (!(error instanceof StoreError)) throw error;
        }
      }
    }));
    assert.deepEqual(one, other, "one Idempotency-Key has two answers");
  }

  /** Does something by chance, to a message that waits or to a line. */
  async function operation(): Promise<void> {
    const place = random.between(0, 1);
    const api = apis[place]!;
    const lineId = oneOf(LINES);
    const waiting = model.accepted.filter(({ status }) => status === "queued");
    const kind = random.between(1, 100);
    if (kind <= 35 || waiting.length === 0) return await send();
    // Above all one whose time is coming.
    const isDue = ({ sendAt }: Message) => sendAt !== null && Math.abs(sendAt - clock.now()) <= MOST_AHEAD_MS;
    const due = waiting.filter(isDue);
    const proposed = waiting.filter(isProposed);
    if (proposed.length > 0 && chance(10)) return void await api.queued.approve(ACCOUNT, oneOf(proposed).id);
    const { id, bulkId } = oneOf(due.length > 0 && chance(50) ? due : waiting);
    if (kind <= 60) {
      const sendAt = soon(api.runtime.clock.now());
      const priority = oneOf(PRIORITIES);
      await api.queued.reschedule(ACCOUNT, id, oneOf([{ sendAt }, { priority }, { sendAt, priority }]));
    } else if (kind <= 68) {
      await api.queued.cancel(ACCOUNT, id);
    } else if (kind <= 70) {
      if (bulkId !== null) await api.queued.cancelBulk(ACCOUNT, bulkId);
    } else if (kind <= 78) {
      await api.amendments.edit(ACCOUNT, id, `edited ${operationsLeft}`);
    } else if (kind <= 84) {
      const paused = lineKeys.queuePaused(lineId);
      await api.kv.commit(chance(40) ? new Change().set(paused, true) : new Change().delete(paused));
      ringQueue(slowBell, lineId);
    } else if (kind <= 90) {
      const worker = workers.get(lineId);
      if (!worker) return;
      const chat = number();
      const timestamp = Math.floor(clock.now() / 1000);
      const change = new Change();
      keepHeard(change, lineId, { chats: [chat], at: timestamp * 1000 });
      await worker.kv.commit(change);
      worker.runner.heard({ chat: `${chat}@s.whatsapp.net`, number: chat, participant: null, timestamp });
    } else if (kind <= 93) {
      await expireMessages(api, () => api.recorder);
    } else if (kind <= 97) {
      await move(lineId, oneOf(["stops", "dies"]));
    } else {
      api.memory.commitsLeft = -1;
      apis[place] = makeApi();
    }
  }

  /** What the network answered to the attempts of each message. */
  const answers = new Map<string, SendOutcome["kind"][]>();
  network.prepareMs = () => chance(50) ? 0 : random.between(1, 30);
  network.encodeMs = () => chance(70) ? 0 : random.between(1, 10);
  network.answerMs = () => chance(50) ? 0 : random.between(1, 20);
  network.outcome = ({ networkId, to, body }) => {
    if (body.kind !== "text" || body.text !== model.textOf(networkId)) faults.push(new Error(`${networkId}: old text`));
    const kind = chance(92) ? "sent" : oneOf(["unknown", "unknown", "restricted", "hold", "retry", "refused"] as const);
    answers.set(networkId, [...answers.get(networkId) ?? [], kind]);
    return kind === "sent" ? { kind, chat: to } : { kind, detail: "by chance", code: "refused" };
  };

  for (const lineId of LINES) await clock.during(move(lineId, "stops"));
  for (; operationsLeft > 0; operationsLeft--) {
    start(operation);
    await clock.advance(random.between(0, 100));
    assert.deepEqual(faults, [], `seed ${seed}`);
  }
  await clock.during(Promise.all(running));
  for (const lineId of LINES) {
    await makeProcess().memory.commit(new Change().delete(lineKeys.queuePaused(lineId)));
    await clock.during(move(lineId, "dies"));
  }
  const { queued } = makeApi();
  for (const { id } of model.accepted.filter(isProposed)) await clock.during(queued.approve(ACCOUNT, id));
  for (let i = 0; i < 24 && !model.accepted.every(hasEnded); i++) await clock.advance(DAY_MS / 24);
  for (const { runner } of workers.values()) await clock.during(runner.stop());
  assert.deepEqual(faults, [], `seed ${seed}`);
  for (const { error = "StoreError" } of logs.flat()) assert.match(String(error), /^StoreError/);
  assert(model.checked > 50, `only ${model.checked} departures could have broken a rule`);

  // What the upkeep does in its time.
  const { runtime, recorder, events } = makeApi();
  const kv = new MemoryKv(disk);
  const sweepStaged = makeSweepStaged(kv);
  for (let i = 0; i < 2; i++) await sweepStaged();
  await settleAllRefunds(kv);
  await finishBulks({ kv, events, sessionName: () => Promise.resolve("") });
  const inTwoDays = new ManualClock(clock.now() + 2 * DAY_MS);
  const later = { ...runtime, clock: inTwoDays, confirmed: confirmedBy(inTwoDays) };
  await expireMessages({ kv, runtime: later }, () => recorder);
  await checkEnd(kv, { model, answers });
}

/** Checks that every accepted message has one end, which all rows agree on, and no row that it needed to wait. */
async function checkEnd(
  kv: Kv,
  { model: { accepted }, answers }: { model: QueueModel; answers: Map<string, SendOutcome["kind"][]> },
): Promise<void> {
  assert.deepEqual(accepted.filter((message) => !hasEnded(message)), []);
  for (const family of ["queue", "schedule", "proposal", "chat_queue", "staged_bulk", "open_bulk", "expiry"]) {
    assert.deepEqual(await keysUnder(kv, [family]), []);
  }
  const ids = accepted.map(({ id }) => id).sort();
  assert.deepEqual((await keysUnder(kv, messageKeys.messages())).map((key) => key[1]).sort(), ids);
  const ends: string[] = [];
  for await (const { value: { event, data } } of kv.list({ prefix: eventKeys.events(ACCOUNT) })) {
    if ("messageId" in data && (event === "message.sent" || event === "message.failed")) ends.push(data.messageId);
  }
  assert.deepEqual(ends.sort(), ids);
  const cancelled = accepted.filter(({ error }) => error?.code === "cancelled");
  const { value: ledger } = await kv.get<Ledger>(messageKeys.ledger(ACCOUNT));
  assert.equal(ledger?.messages, accepted.length);
  assert.equal(ledger?.usage.daily, accepted.length - cancelled.length);
  assert.equal(await makeQueuedCount(kv)(), 0);
  for (const { id, networkId, status } of accepted) {
    if (status === "sent") assert(answers.get(networkId)?.includes("sent"), `${id} was never sent`);
  }
  for (const { id, networkId } of cancelled) {
    const kinds = answers.get(networkId) ?? [];
    assert(kinds.every((kind) => kind === "hold" || kind === "restricted"), `${id} had left when it was cancelled`);
  }
}

for (let seed = 1; seed <= 8; seed++) {
  Deno.test(`whatever comes between the store calls of others, the queue keeps its rules and leaves no row (seed ${seed})`, () =>
    run(seed));
}
