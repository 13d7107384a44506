/**
 * A client's system, as somebody writes it with the specification alone: it registers a webhook and checks every request
 * with the reference check and with Standard Webhooks. A request that does not pass fails the test when it ends.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Json } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { type Answer, answering, type Received, Receiver } from "./receiver.ts";
import type { RunningGateway } from "./gateway_process.ts";
import type { Stage } from "./stage.ts";
import { until } from "./until.ts";

/** One event as it was posted. */
export interface Delivered {
  /** `webhook-id`. */
  id: string;
  event: string;
  sessionId: string;
  sessionName: string;
  data: Json;
  request: Received;
}

export interface SubscribeOptions {
  events?: readonly string[];
  sessionId?: string;
  answer?: Answer;
}

export interface Subscriber {
  readonly webhookId: string;
  readonly receiver: Receiver;
  /** The secrets that a request may be signed with, the newest first. */
  readonly secrets: string[];
  /** What was posted so far, in the order of arrival. */
  delivered(): Delivered[];
  /** Waits for a delivery that fits. */
  event(what: string, fits: (delivered: Delivered) => boolean): Promise<Delivered>;
  /** Waits until so many different events have come. */
  count(events: number): Promise<Delivered[]>;
  /** Stops listening. Fails when a request was not as the documents say. */
  end(): Promise<void>;
}

/** Opens a receiver and registers it. */
export async function subscribe(stage: Stage<RunningGateway>, options: SubscribeOptions = {}): Promise<Subscriber> {
  const { answer = answering(200), ...subscription } = options;
  const receiver = await Receiver.start(answer);
  const { data: webhook } = await stage.api.call("POST", "/webhooks", { url: receiver.url, ...subscription });
  const secrets = [webhook.secret];
  const delivered = () => receiver.requests.map(read);
  return {
    webhookId: webhook.id,
    receiver,
    secrets,
    delivered,
    event: (what, fits) => until(() => delivered().find(fits), what),
    count: (events) =>
      until(() => {
        const seen = new Map(delivered().map((one) => [one.id, one]));
        return Promise.resolve(seen.size >= events ? [...seen.values()] : null);
      }, `${events} events`),
    async end() {
      await receiver.close();
      for (const request of receiver.requests) verify(request, secrets);
    },
  };
}

function read(request: Received): Delivered {
  const { event, sessionId, sessionName, data } = JSON.parse(request.body);
  return { id: String(request.headers["webhook-id"]), event, sessionId, sessionName, data, request };
}

/** Both checks; throws when one fails for every secret. */
function verify({ body, headers }: Received, secrets: readonly string[]): void {
  assert.equal(headers["content-type"], "application/json");
  assert.ok(secrets.some((secret) => referenceCheck(JSON.parse(body), headers["x-webhook-signature"], secret)), body);
  assert.ok(secrets.some((secret) => standardCheck(body, headers, secret)), body);
}

/** The specification's: serialise the JSON body, compute the hex HMAC, compare with the header in constant time. */
export function referenceCheck(parsed: unknown, signature: string | string[] | undefined, secret: string): boolean {
  const expected = Buffer.from(createHmac("sha256", secret).update(JSON.stringify(parsed)).digest("hex"));
  const given = Buffer.from(String(signature));
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** https://github.com/standard-webhooks/standard-webhooks: id, time and body, keyed with the decoded secret. */
export function standardCheck(body: string, headers: Received["headers"], secret: string): boolean {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures } = headers;
  if (Math.abs(systemClock.now() / 1000 - Number(timestamp)) > 300) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return String(signatures).split(" ").includes(`v1,${expected}`);
}
