/** A quiet account as a process of a bench: sends a text now and then, awaits its webhook, and reports the times. */
import { createServer } from "node:http";
import { listenOn } from "../../src/base/listening.ts";
import { runAsChild, wallClock } from "./child.ts";

export interface QuietAccount {
  /** `http://HOST:PORT/v1` */
  baseUrl: string;
  apiKey: string;
  sessionId: string;
  to: string;
}

export interface QuietReady {
  /** Where the account's webhook has to point. */
  hookUrl: string;
}

/** Of each message, milliseconds. */
export interface QuietTimes {
  /** From the request to its 202. */
  accept: number[];
  /** From the request until the network had acknowledged it. */
  sent: number[];
  /** Of that: from its acceptance until it was handed over, and until the network had acknowledged it. */
  queue: number[];
  send: number[];
  /** From then until the first webhook request. */
  webhook: number[];
}

/** What has not come by then counts with this time. */
const LATEST_MS = 20_000;

/** Asks for this many sends, evenly spaced. */
export interface QuietQuestion extends QuietAccount {
  sends: number;
  everyMs: number;
}

if (import.meta.main) {
  await runAsChild<null, QuietQuestion>(async () => {
    /** By message: when its webhook came, and when the network had acknowledged it, Unix ms. */
    const heard = new Map<string, { at: number; sentAt: number }>();
    const server = createServer((request, response) => {
      const at = wallClock();
      let body = "";
      request.on("data", (chunk) => body += chunk);
      request.on("end", () => {
        response.end();
        const { event, data } = JSON.parse(body);
        if (event === "message.sent" && !heard.has(data.messageId)) {
          heard.set(data.messageId, { at, sentAt: Date.parse(data.sentAt) });
        }
      });
    });
    const ready: QuietReady = { hookUrl: `http://127.0.0.1:${await listenOn(server)}/hook` };
    return { ready, answer: (question) => measure(question, heard) };
  });
}

async function measure(
  { sends, everyMs, baseUrl, apiKey, sessionId, to }: QuietQuestion,
  heard: ReadonlyMap<string, { at: number; sentAt: number }>,
): Promise<QuietTimes> {
  const sending = Array.from({ length: sends }, async (_, i) => {
    await new Promise((resolve) => setTimeout(resolve, i * everyMs));
    const asked = wallClock();
    const answer = await fetch(`${baseUrl}/messages/send/text`, {
      method: "POST",
      headers: { "x-api-key": apiKey, "content-type": "application/json" },
      body: JSON.stringify({ sessionId, to, text: `message ${i}` }),
    });
    const { messageId } = await answer.json();
    if (answer.status !== 202) throw new Error(`the quiet account was answered ${answer.status}`);
    return { messageId, asked, accepted: wallClock() };
  });
  const sent = await Promise.all(sending);
  const end = wallClock() + LATEST_MS;
  while (sent.some(({ messageId }) => !heard.has(messageId)) && wallClock() < end) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const cameOf = (messageId: string) => heard.get(messageId) ?? { sentAt: end, at: end };
  const departed = await Promise.all(sent.map(async ({ messageId }) => {
    const answer = await fetch(`${baseUrl}/messages/${messageId}`, { headers: { "x-api-key": apiKey } });
    const { data: { createdAt, life } } = await answer.json();
    const handedOver = life.find(({ status }: { status: string }) => status === "processing")?.at ?? end;
    return { createdAt: new Date(createdAt).getTime(), handedOverAt: new Date(handedOver).getTime() };
  }));
  return {
    queue: departed.map(({ createdAt, handedOverAt }) => handedOverAt - createdAt),
    send: sent.map(({ messageId }, i) => cameOf(messageId).sentAt - departed[i]!.handedOverAt),
    accept: sent.map(({ asked, accepted }) => accepted - asked),
    sent: sent.map(({ messageId, asked }) => Math.max(0, cameOf(messageId).sentAt - asked)),
    webhook: sent.map(({ messageId }) => Math.max(0, cameOf(messageId).at - cameOf(messageId).sentAt)),
  };
}
