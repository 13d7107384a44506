/**
 * What a wrong clock does: set forward or back by an hour, a day or a year, while a gateway runs or before it starts, with
 * the network's word that the new time is right or without. Every sweep runs, and the queue, on data that all end within
 * the hour.
 */
import assert from "node:assert/strict";
import { ApiWorld } from "../support/api_world.ts";
import { plainIncoming } from "../support/incoming.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const SPANS = { "an hour": HOUR_MS, "a day": DAY_MS, "a year": 365 * DAY_MS };
const ANA = "491555000001";
const DAYS = { history: 365, events: 30, files: 1 };

const END_MS = 30 * MINUTE_MS;
const EVERYTHING = ["answer", "event", "file", "history", "verification", "waiting message"];

interface Stage {
  /** The last world on these data. */
  world: ApiWorld;
  sessionId: string;
  /** Message ids. */
  old: string;
  kept: string;
  waiting: string;
  scheduled: string;
  verification: string;
  event: string;
  /** Repeats a request; resolves to the id of its message. */
  repeat(world: ApiWorld): Promise<string>;
  /** Brings back data, files and clock, as half an hour before all of it ends. */
  rewind(): Promise<void>;
}

async function stage(): Promise<Stage> {
  const world = await ApiWorld.open();
  const { clock, confirmed } = world.runtime;
  const later = async (ms: number) => {
    clock.jump(ms);
    confirmed.confirm(clock.wall());
    await clock.advance(MINUTE_MS);
    await sweep(world);
  };
  const sessionId = await world.linkedSession();
  const paused = await world.linkedSession();
  await answerOf(world, "POST", `/v1/sessions/${paused}/queue/pause`);
  const old = await sent(world, { sessionId });
  await later((DAYS.history - DAYS.events) * DAY_MS);
  await sent(world, { sessionId });
  await clock.advance(MINUTE_MS);
  const event = (await eventsOf(world))[0]!;
  await later((DAYS.events - DAYS.files) * DAY_MS);
  const repeat = (world: ApiWorld) => sent(world, { sessionId: paused, ttl: 100_000 }, { "idempotency-key": "once" });
  const kept = await repeat(world);
  await receiveFile(world, sessionId);
  await later(DAYS.files * DAY_MS - END_MS);
  const waiting = await sent(world, { sessionId: paused, ttl: 40 * 60 });
  const scheduled = await sent(world, { sessionId, sendAt: new Date(clock.now() + 40 * MINUTE_MS).toISOString() });
  const { data } = await answerOf(world, "POST", "/v1/verifications", { sessionId, number: ANA, ttl: 40 * 60 });
  await clock.advance(11 * MINUTE_MS);

  const [wall, rows] = [clock.wall(), world.kv.disk.remember()];
  const files = await Promise.all(
    (await world.files()).map(async (path) => ({ path, bytes: await Deno.readFile(path) })),
  );
  const rewind = async () => {
    rows();
    clock.jump(wall - clock.wall());
    for (const { path, bytes } of files) {
      await Deno.writeFile(path, bytes);
      await Deno.utime(path, new Date(wall - DAY_MS), new Date(wall - DAY_MS));
    }
  };
  return { world, sessionId, old, kept, waiting, scheduled, verification: data.id, event, repeat, rewind };
}

async function sent(world: ApiWorld, fields: Record<string, unknown>, headers = {}): Promise<string> {
  const json = { to: ANA, text: "hello", ...fields };
  return String((await answerOf(world, "POST", "/v1/messages/send/text", json, headers)).messageId);
}

// deno-lint-ignore no-explicit-any
async function answerOf(world: ApiWorld, method: string, path: string, json?: unknown, headers = {}): Promise<any> {
  const answer = await world.call(method, path, { ...(json === undefined ? {} : { json }), headers });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
  return await answer.json();
}

async function eventsOf(world: ApiWorld): Promise<string[]> {
  return (await world.services.events.latest(world.account.id, 1_000)).map(({ id }) => id);
}

/** What is there no longer, or has failed. */
async function missing(world: ApiWorld, s: Stage): Promise<string[]> {
  const [old, waiting] = [await world.message(s.old), await world.message(s.waiting)];
  const { data } = await answerOf(world, "GET", `/v1/verifications/${s.verification}`);
  const isThere = {
    answer: await s.repeat(world) === s.kept,
    event: (await eventsOf(world)).includes(s.event),
    file: (await world.files()).length > 0,
    history: old !== null,
    verification: data.status === "pending",
    "waiting message": waiting?.status === "queued",
  };
  return Object.entries(isThere).filter(([, there]) => !there).map(([name]) => name);
}

/** What the gateway still does: a message leaves within a minute, one arrives, and what is logged comes last. */
async function lives(world: ApiWorld, { sessionId }: Stage, timestamp: number): Promise<void> {
  const networkId = `3A${timestamp}`;
  const [newest] = await eventsOf(world);
  const id = await sent(world, { sessionId });
  await world.runtime.clock.advance(MINUTE_MS);
  assert.equal((await world.message(id))?.status, "sent");
  const text = plainIncoming({ networkId, chat: `${ANA}@s.whatsapp.net`, number: ANA, timestamp, text: "hola" });
  assert.ok(await world.runtime.clock.during(world.network.of(sessionId).receive(text)), "a message arrives");
  assert.ok((await eventsOf(world))[0]! > newest!, "what is new comes last");
}

async function receiveFile(world: ApiWorld, sessionId: string): Promise<void> {
  const content = new TextEncoder().encode("%PDF-1.7 an invoice");
  const download = () => Promise.resolve(new Blob([content]).stream());
  const taken = world.network.of(sessionId).receive(plainIncoming({
    networkId: "3A01",
    chat: `${ANA}@s.whatsapp.net`,
    number: ANA,
    timestamp: Math.floor(world.runtime.clock.now() / 1000),
    type: "documentMessage",
    media: { mimetype: "application/pdf", filename: "invoice.pdf", size: content.length, download } as never,
  }));
  await world.runtime.clock.during(taken);
}

async function sweep({ sweeps, runtime }: ApiWorld): Promise<void> {
  const { signal } = new AbortController();
  const all = async () => {
    for (const work of Object.values(sweeps)) await work(signal);
  };
  await runtime.clock.during(all());
}

let s: Stage;
Deno.test.beforeAll(async () => void (s = await stage()));
Deno.test.afterAll(() => s.world.close());

async function begin(jumpMs: number, isAtStart: boolean): Promise<ApiWorld> {
  const { clock } = s.world.runtime;
  await s.rewind();
  if (isAtStart) clock.jump(jumpMs);
  s.world.die();
  s.world = await ApiWorld.open({ after: s.world });
  await clock.advance(MINUTE_MS);
  if (!isAtStart) clock.jump(jumpMs);
  // The time is looked at so often.
  await clock.advance(10 * MINUTE_MS);
  return s.world;
}

for (const [direction, sign] of Object.entries({ forward: 1, back: -1 })) {
  for (const [span, spanMs] of Object.entries(SPANS)) {
    for (const when of ["while it runs", "before it starts"]) {
      for (const isConfirmed of [true, false]) {
        const jumpMs = sign * spanMs;
        const fate = isConfirmed ? "and that is right" : "and that is wrong";
        Deno.test(`a clock set ${direction} by ${span} ${when}, ${fate}`, async () => {
          const world = await begin(jumpMs, when !== "while it runs");
          const { clock, confirmed } = world.runtime;
          // What the network says, which is right.
          const trueAt = Math.floor((clock.wall() - (isConfirmed ? 0 : jumpMs)) / 1000);
          await sweep(world);
          await lives(world, s, trueAt);
          assert.deepEqual(await missing(world, s), [], "before the time is confirmed");
          const isTold = world.runtime.lines.some(({ msg }) => String(msg).startsWith("the clock jumped ahead"));
          assert.equal(isTold, sign > 0, "it is told in the log");
          assert.equal(
            (await world.message(s.scheduled))?.status,
            sign > 0 ? "sent" : "queued",
            "a schedule goes by the clock",
          );
          if (isConfirmed) confirmed.confirm(clock.wall());
          else clock.jump(-jumpMs);
          await clock.advance(MINUTE_MS);
          await sweep(world);
          const isOver = isConfirmed && sign > 0;
          assert.deepEqual(await missing(world, s), isOver ? EVERYTHING : []);
        });
      }
    }
  }
}
