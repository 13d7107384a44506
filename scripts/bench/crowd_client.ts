/** The traffic of many lines as a process: texts of the lines or to them, each followed to its event in the feed. */
import { type Client, httpClient } from "../../src/cli/client.ts";
import { followEvents } from "../../src/cli/listen.ts";
import { sleep, systemClock } from "../../src/runtime.ts";
import { runAsChild, wallClock } from "./child.ts";
import { percentile } from "./measure.ts";
import { recipientOf, TEXT } from "./sends.ts";

export interface CrowdClient {
  /** `http://HOST:PORT/v1` */
  baseUrl: string;
  apiKey: string;
  /** Of the simulated network, whose phones write to the lines. */
  controlUrl: string;
}

/** What a client is asked for. */
export interface Traffic {
  /** Lines send, or friends write to them. */
  direction: "out" | "in";
  /** They take turns. */
  lines: readonly { sessionId: string; phone: string }[];
  /** Whom each line writes to, and who writes to it, one after another. */
  friends: readonly string[];
  count: number;
  /** Texts that are asked for at the same time, and whether each is over with its answer or with its event. */
  atOnce: number;
  until: "answer" | "event";
  /** How many begin in a second, however long others take; null: as many as can. */
  perSecond: number | null;
}

/** In ms, from when a text was due to be asked for. */
export interface Delays {
  /** From the beginning to the last event. */
  tookMs: number;
  /** Until the request was answered. */
  answer: Spread;
  /** Until the network had acknowledged it; of texts to the lines the same as `event`. */
  sent: Spread;
  /** Until its event came in the stream. */
  event: Spread;
  /** Texts of which no event came in time. */
  missing: number;
}

interface Spread {
  p50: number;
  p99: number;
}

/** How long the last events may take once all texts are asked for. */
const GIVE_UP_MS = 120_000;

/** When the event came, and when that which it reports happened, Unix ms. */
interface Arrival {
  at: number;
  sentAt: number;
}

/** The events that came, by the message's id, and by the text of one that was received. */
class Arrivals {
  readonly #came = new Map<string, Arrival>();
  readonly #awaited = new Map<string, (arrival: Arrival) => void>();

  came(key: string, arrival: Arrival): void {
    this.#came.set(key, arrival);
    this.#awaited.get(key)?.(arrival);
  }

  /** Null when it does not come before `end`, Unix ms. */
  async of(key: string, end: number): Promise<Arrival | null> {
    const { promise, resolve } = Promise.withResolvers<Arrival | null>();
    this.#awaited.set(key, resolve);
    const arrival = this.#came.get(key);
    if (arrival) resolve(arrival);
    const timer = setTimeout(() => resolve(null), end - wallClock());
    const came = await promise;
    clearTimeout(timer);
    return came;
  }
}

/** Texts of friends so far: each is another one. */
let texts = 0;

if (import.meta.main) {
  await runAsChild<CrowdClient, Traffic>(async ({ baseUrl, apiKey, controlUrl }) => {
    const arrivals = new Arrivals();
    const opened = Promise.withResolvers<void>();
    void (async () => {
      const types = "message.sent,message.received";
      const stream = { clock: systemClock, baseUrl, apiKey, types, sessionId: null, after: "now" };
      const { signal } = new AbortController();
      for await (
        const { event, data } of followEvents({ ...stream, signal, opened: opened.resolve, broke: () => {} })
      ) {
        const at = wallClock();
        const { messageId, sentAt, text } = data;
        if (event === "message.sent") arrivals.came(messageId, { at, sentAt: Date.parse(sentAt) });
        else arrivals.came(text, { at, sentAt: at });
      }
    })();
    await opened.promise;
    const api = httpClient(baseUrl, { "x-api-key": apiKey });
    const control = httpClient(controlUrl);
    return { ready: true, answer: (traffic) => make(traffic, { api, control, arrivals }) };
  });
}

async function make(
  traffic: Traffic,
  { api, control, arrivals }: { api: Client; control: Client; arrivals: Arrivals },
): Promise<Delays> {
  const { direction, lines, friends, count, atOnce, until, perSecond } = traffic;
  /** Asks for the text; resolves to what its event is known by. */
  async function begin(i: number): Promise<string> {
    const { sessionId, phone } = lines[i % lines.length]!;
    const friend = recipientOf(i, { lines: lines.length, to: friends });
    if (direction === "in") {
      const text = `${++texts} ${TEXT}`;
      await control.call("POST", `/phones/${friend}/messages`, { to: phone, text });
      return text;
    }
    return (await api.call("POST", "/messages/send/text", { sessionId, to: friend, text: TEXT })).messageId;
  }

  const asked: { due: number; answered: number; key: string }[] = [];
  const began = wallClock();
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, async () => {
    while (next < count) {
      const i = next++;
      const due = perSecond === null ? wallClock() : began + i * 1000 / perSecond;
      await sleep(systemClock, Math.max(0, due - wallClock()));
      const key = await begin(i);
      asked.push({ due, answered: wallClock(), key });
      if (until === "event") await arrivals.of(key, wallClock() + GIVE_UP_MS);
    }
  }));
  const end = wallClock() + GIVE_UP_MS;
  const ended = await Promise.all(asked.map(({ key }) => arrivals.of(key, end)));
  const came = ended.flatMap((arrival, i) => arrival ? [{ ...arrival, due: asked[i]!.due }] : []);
  return {
    tookMs: Math.max(began, ...came.map(({ at }) => at)) - began,
    answer: spreadOf(asked.map(({ due, answered }) => answered - due)),
    sent: spreadOf(came.map(({ due, sentAt }) => Math.max(0, sentAt - due))),
    event: spreadOf(came.map(({ due, at }) => at - due)),
    missing: count - came.length,
  };
}

function spreadOf(values: readonly number[]): Spread {
  return { p50: percentile(values, 50), p99: percentile(values, 99) };
}
