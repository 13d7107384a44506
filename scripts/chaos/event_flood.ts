/**
 * Promise 4 under fire: messages flow in and out while the gateway is killed at random. Every event must reach the
 * webhook at least once, copies share their id, and the feed lists each once, in order per chat.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Json, until } from "../../src/cli/client.ts";
import { sleep, systemClock, systemRandom } from "../../src/runtime.ts";
import { openStage, type Stage } from "../../tests/support/stage.ts";

export interface EventFloodOptions {
  /** That many incoming and that many outgoing. */
  messages: number;
  kills: number;
  killAfterMs: [number, number];
  report: (line: string) => void;
}

export interface EventFloodResult {
  delivered: number;
  copies: number;
  feed: number;
  kills: number;
  broken: string[];
}

export async function eventFlood(options: EventFloodOptions): Promise<EventFloodResult> {
  const stage = await openStage();
  const receiver = await receive();
  const line = await stage.linkLine("4915000000010");
  const customers = ["4917000000001", "4917000000002", "4917000000003", "4917000000004"];
  for (const customer of customers) await stage.addPhone(customer);
  await stage.api.call("POST", "/webhooks", { url: receiver.url, events: ["message.sent", "message.received"] });

  const outgoing = sendOut(stage, { sessionId: line.sessionId, to: customers[0]!, count: options.messages });
  const incoming = sendIn(stage, { line: line.number, from: customers, count: options.messages });
  let flowing = true;
  const flow = Promise.all([outgoing, incoming]).finally(() => flowing = false);
  let kills = 0;
  while (kills < options.kills) {
    await sleep(systemClock, systemRandom.between(...options.killAfterMs));
    await stage.gateway.kill();
    await stage.gateway.start();
    kills++;
    if (kills % 10 === 0) {
      options.report(`${kills} kills, ${receiver.ids.size} events received${flowing ? "" : ", all sent"}`);
    }
  }
  const [sentIds, texts] = await flow;

  const feed = await until(systemClock, async () => {
    const events = await readFeed(stage);
    return count(events, "message.sent") >= sentIds.length && count(events, "message.received") >= texts.length
      ? events
      : null;
  }, { what: "the feed to hold every event", timeoutMs: 180_000 });
  await until(
    systemClock,
    () => Promise.resolve(feed.every((event) => receiver.ids.has(event.id) || !WATCHED.has(event.event)) || null),
    { what: "the webhook to have every event", timeoutMs: 180_000 },
  );

  const broken: string[] = [];
  const ids = feed.map((event) => event.id);
  if (new Set(ids).size !== ids.length) broken.push("the feed lists an event twice");
  const sent = feed.filter((event) => event.event === "message.sent").map((event) => event.data.messageId);
  if (sent.join() !== sentIds.join()) broken.push(`message.sent: ${sent.length} of ${sentIds.length}, or not in order`);
  for (const customer of customers) {
    const got = feed.filter((e) => e.event === "message.received" && e.data.number === customer).map((e) =>
      e.data.text
    );
    const wanted = texts.filter((text) => text.startsWith(customer));
    if (got.join("\n") !== wanted.join("\n")) {
      broken.push(
        `from ${customer}: ${got.length} of ${wanted.length}, ${new Set(got).size} different, or not in order`,
      );
    }
  }
  for (const [id, bodies] of receiver.ids) {
    if (new Set(bodies).size !== 1) broken.push(`copies of ${id} differ`);
  }
  const delivered = [...receiver.ids.values()].reduce((sum, bodies) => sum + bodies.length, 0);
  receiver.close();
  await stage.end([...texts]);
  return { delivered: receiver.ids.size, copies: delivered - receiver.ids.size, feed: feed.length, kills, broken };
}

const WATCHED = new Set(["message.sent", "message.received"]);

function count(events: Json[], name: string): number {
  return events.filter((event) => event.event === name).length;
}

async function sendOut(
  stage: Stage,
  { sessionId, to, count }: { sessionId: string; to: string; count: number },
): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const { messageId } = await until(
      systemClock,
      () =>
        stage.request("POST", "/messages/send/text", {
          headers: { "content-type": "application/json", "idempotency-key": `out-${i}` },
          body: JSON.stringify({ sessionId, to, text: `outgoing flood message ${i}` }),
        }).then((response) => response.status === 202 ? response.json() : null, () => null),
      { what: "a send to be accepted" },
    );
    ids.push(messageId);
  }
  return ids;
}

async function sendIn(
  stage: Stage,
  { line, from, count }: { line: string; from: string[]; count: number },
): Promise<string[]> {
  const texts: string[] = [];
  for (let i = 0; i < count; i++) {
    const sender = from[i % from.length]!;
    const text = `${sender} incoming flood message ${i}`;
    await stage.control.call("POST", `/phones/${sender}/messages`, { to: line, text });
    texts.push(text);
    if (i % 20 === 19) await sleep(systemClock, 100);
  }
  return texts;
}

async function readFeed(stage: Stage): Promise<Json[]> {
  const events: Json[] = [];
  let after: string | null = null;
  for (;;) {
    const page: Json = await stage.api.call("GET", `/events?limit=500${after ? `&after=${after}` : ""}`);
    events.push(...page.data);
    if (page.data.length === 0 || page.next === null || page.next === after) return events;
    after = page.next;
  }
}

/** A receiver that keeps every body by event id. */
async function receive() {
  const ids = new Map<string, string[]>();
  const server = createServer((request, response) => {
    const parts: string[] = [];
    request.setEncoding("utf8");
    request.on("data", (part: string) => parts.push(part));
    request.on("end", () => {
      const id = String(request.headers["webhook-id"]);
      ids.set(id, [...ids.get(id) ?? [], parts.join("")]);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    ids,
    close: () => server.close(),
  };
}
