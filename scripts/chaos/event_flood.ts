/**
 * Promise 4 under fire: messages flow in and out while the gateway is killed at random. Every event must reach the
 * webhook at least once, copies with the same id and bytes, and the feed must list each once, in order per chat.
 */
import { Buffer } from "node:buffer";
import { createServer } from "node:http";
import { listenOn } from "../../src/base/listening.ts";
import { type Json, until } from "../../src/cli/client.ts";
import { sleep, systemClock, systemRandom } from "../../src/runtime.ts";
import { type LinkedLine, openStage, type Stage } from "../../tests/support/stage.ts";
import {
  type Accepted,
  checkFeed,
  checkPhones,
  checkWebhook,
  Feed,
  type Posted,
  type Written,
} from "./event_checks.ts";

interface EventFloodOptions {
  /** How many incoming, and as many outgoing, spread over the kills. */
  messages: number;
  kills: number;
  /** Limits of the random time between a start and the next kill. */
  killAfterMs: [number, number];
  report: (line: string) => void;
}

interface EventFloodResult {
  incoming: number;
  outgoing: number;
  kills: number;
  /** Events in the feed, and how many of them the webhook wanted. */
  events: number;
  watched: number;
  /** Requests at the webhook beyond one per event. */
  copies: number;
  tookMs: number;
  /** Sentences; empty when every promise held. */
  broken: string[];
}

const LINE = "4915000000010";
const CUSTOMERS = ["4917000000001", "4917000000002", "4917000000003", "4917000000004"];
const WATCHED = ["message.sent", "message.status", "message.received"];
/** How long the rest may take after the last kill. */
const CATCH_UP_MS = 240_000;

export async function eventFlood(options: EventFloodOptions): Promise<EventFloodResult> {
  const started = systemClock.now();
  const stage = await openStage();
  const receiver = await receive();
  try {
    for (const customer of CUSTOMERS) await stage.addPhone(customer);
    const line = await stage.linkLine(LINE);
    const participants = [...CUSTOMERS, LINE];
    const { id: group } = await stage.control.call("POST", "/groups", { subject: "Everybody", participants });
    await stage.api.call("POST", "/webhooks", { url: receiver.url, events: WATCHED });

    const progress = { kills: 0 };
    const flow = Promise.all([
      writeIn(stage, { ...options, group, mayWrite: pace(options, progress) }),
      sendOut(stage, line, { ...options, mayWrite: pace(options, progress) }),
    ]);
    await killAgainAndAgain(stage, { ...options, line, progress, received: () => receiver.posted.length });
    const [written, accepted] = await flow;
    const feed = await settledFeed(stage, { written, accepted });
    const watched = feed.filter(({ event }) => WATCHED.includes(event));
    await until(systemClock, () => {
      const ids = new Set(receiver.posted.map(({ id }) => id));
      return Promise.resolve(watched.every(({ id }) => ids.has(id)) || null);
    }, { what: "the webhook to have every event", timeoutMs: CATCH_UP_MS });

    const inboxes = new Map<string, Json[]>();
    for (const customer of CUSTOMERS) inboxes.set(customer, await stage.inbox(customer));
    const broken = [
      ...checkFeed(feed, { written, accepted }),
      ...checkWebhook(watched, receiver.posted),
      ...checkPhones(inboxes, accepted),
    ];
    receiver.close();
    await stage.end().catch((error) => broken.push(error.message));
    return {
      incoming: written.length,
      outgoing: accepted.length,
      kills: progress.kills,
      events: feed.length,
      watched: watched.length,
      copies: receiver.posted.length - watched.length,
      tookMs: systemClock.now() - started,
      broken,
    };
  } catch (error) {
    receiver.close();
    await stage.abandon();
    throw error;
  }
}

/** For a person at a terminal. */
export function describeEventFlood(result: EventFloodResult): string[] {
  const { incoming, outgoing, kills, events, watched, copies, tookMs, broken } = result;
  return [
    `${kills} kills in ${Math.round(tookMs / 1000)} s, while ${incoming} messages came in and ${outgoing} went out`,
    `${events} events in the feed, each once, in order per chat`,
    `${watched} of them at the webhook; ${copies} came again, under the same id, with the same bytes`,
    `${outgoing} messages at the phones, each once, in order`,
    "every promise held",
  ].slice(0, broken.length === 0 ? undefined : 1).concat(broken.length === 0 ? [] : `${broken.length} PROMISES BROKEN`);
}

/** Waits until enough kills are done for the `i`th message to be due: some flow between any two kills. */
function pace({ messages, kills }: EventFloodOptions, progress: { kills: number }) {
  return async (i: number) => {
    while (progress.kills < kills && i >= messages * (progress.kills + 1) / kills) await sleep(systemClock, 20);
    await sleep(systemClock, systemRandom.between(0, 60));
  };
}

type MayWrite = ReturnType<typeof pace>;

async function killAgainAndAgain(
  stage: Stage,
  { line, kills, killAfterMs, report, progress, received }: EventFloodOptions & {
    line: LinkedLine;
    progress: { kills: number };
    received: () => number;
  },
): Promise<void> {
  while (progress.kills < kills) {
    // Every other kill hits a line that is up, however slow the machine is; the others may also hit it while connecting.
    if (progress.kills % 2 === 0) await stage.sessionStatus(line, "connected");
    await sleep(systemClock, systemRandom.between(...killAfterMs));
    await stage.gateway.kill();
    await stage.gateway.start();
    progress.kills++;
    if (progress.kills % 10 === 0) report(`${progress.kills} kills, ${received()} requests at the webhook`);
  }
}

/** Sends one text after another; a request without an answer is repeated under its idempotency key. */
async function sendOut(
  stage: Stage,
  { sessionId }: LinkedLine,
  { messages, mayWrite }: EventFloodOptions & { mayWrite: MayWrite },
): Promise<Accepted[]> {
  const accepted: Accepted[] = [];
  for (let i = 0; i < messages; i++) {
    await mayWrite(i);
    const to = CUSTOMERS[i % CUSTOMERS.length]!;
    const text = `outgoing flood message ${i}`;
    stage.secrets.add(text);
    const { messageId } = await until(
      systemClock,
      () =>
        stage.request("POST", "/messages/send/text", {
          headers: { "content-type": "application/json", "idempotency-key": `out-${i}` },
          body: JSON.stringify({ sessionId, to, text }),
        }).then(async (response) => response.status === 202 ? await response.json() : null).catch(() => null),
      { what: "a send to be accepted" },
    );
    accepted.push({ messageId, to, text });
  }
  return accepted;
}

/** Customers write to the line, every fifth message to the group. */
async function writeIn(
  stage: Stage,
  { messages, group, mayWrite }: EventFloodOptions & { group: string; mayWrite: MayWrite },
): Promise<Written[]> {
  const written: Written[] = [];
  for (let i = 0; i < messages; i++) {
    await mayWrite(i);
    const number = CUSTOMERS[i % CUSTOMERS.length]!;
    const text = `incoming flood message ${i}`;
    const inGroup = i % 5 === 4;
    const to = inGroup ? group : LINE;
    const { id } = await stage.control.call("POST", `/phones/${number}/messages`, { to, text });
    written.push({ id, number, text, chat: inGroup ? group : `${number}@s.whatsapp.net` });
  }
  return written;
}

/** The whole feed, once every message is in it as received or as delivered. */
async function settledFeed(
  stage: Stage,
  { written, accepted }: { written: Written[]; accepted: Accepted[] },
): Promise<Json[]> {
  const feed = new Feed(stage.api.call);
  const end = systemClock.now() + CATCH_UP_MS;
  for (;;) {
    const events = await feed.readOn();
    const count = (fits: (event: Json) => boolean) => events.filter(fits).length;
    const done = count(({ event }) => event === "message.received") >= written.length &&
      count(({ data }) => data.status === "delivered") >= accepted.length;
    // The checks report what is missing then.
    if (done || systemClock.now() > end) return events;
    await sleep(systemClock, 200);
  }
}

/** A receiver that keeps every request. */
async function receive() {
  const posted: Posted[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      posted.push({ id: String(request.headers["webhook-id"]), body: Buffer.concat(parts).toString("utf8") });
      response.end();
    });
  });
  const port = await listenOn(server);
  return {
    url: `http://127.0.0.1:${port}/`,
    posted,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
