/** Ten kinds of noise that one account can make, in a process of their own: begun and ended by the bench `neighbours`. */
import { type Client, httpClient } from "../../src/cli/client.ts";
import { runAsChild } from "./child.ts";

export interface NoiseSetting {
  /** `http://HOST:PORT/v1` */
  baseUrl: string;
  controlUrl: string;
  apiKey: string;
  /** The key of an account with a low rate limit. */
  limitedKey: string;
  /** Line that sends, one that is paused, and one that flaps; with the number of each. */
  busy: Line;
  paused: Line;
  flapping: Line;
  /** Numbers of people. */
  people: readonly string[];
}

interface Line {
  sessionId: string;
  number: string;
}

/** Begins the noise, or ends what was begun. */
export type NoiseQuestion = { begin: NoiseName } | { end: true };

/** How often the noise got each answer. */
export type NoiseAnswer = Record<string, number>;

export const NOISES = [
  "100 failing webhooks with 2,000 events",
  "150 filtered event streams",
  "bulks of 10,000",
  "uploads of 5 MB",
  "incoming files of 1 MB",
  "queue views of 1,000",
  "history pages of 100",
  "wrong keys",
  "429s",
  "a flapping line",
] as const;
export type NoiseName = (typeof NOISES)[number];

const FAILING_WEBHOOKS = 100;
const STREAMS = 150;
/** Far more than a line with pauses sends, and no flood of its own. */
const TEXTS_AT_ONCE = 5;
const TEXTS_EVERY_MS = 500;
const FLAP_MS = 200;
/** Nothing listens there. */
const NOWHERE = "http://127.0.0.1:1025/hook";

if (import.meta.main) {
  await runAsChild<NoiseSetting, NoiseQuestion>((setting) => {
    let over = new AbortController();
    let noise: Promise<unknown> = Promise.resolve();
    let answers: NoiseAnswer = {};
    return Promise.resolve({
      ready: true,
      async answer(question) {
        if ("begin" in question) {
          over = new AbortController();
          answers = {};
          const make = makers({
            setting,
            signal: over.signal,
            count: (what) => answers[what] = (answers[what] ?? 0) + 1,
          });
          const prepared = await make[question.begin]();
          noise = prepared();
          return null;
        }
        over.abort();
        await noise;
        return answers;
      },
    });
  });
}

interface Context {
  setting: NoiseSetting;
  signal: AbortSignal;
  count: (what: string) => void;
}

/** Each prepares its noise and makes it until the signal aborts. */
type Maker = () => Promise<() => Promise<unknown>>;

function makers({ setting, signal, count }: Context): Record<NoiseName, Maker> {
  const { baseUrl, apiKey, busy, paused, flapping, people } = setting;
  const api = httpClient(baseUrl, { "x-api-key": apiKey });
  const control = httpClient(setting.controlUrl);

  /** Waits for the answer, also when the noise is over: what it asked for is not to weigh on what is measured next. */
  async function ask(path: string, init: RequestInit = {}, key = apiKey): Promise<void> {
    try {
      const answer = await fetch(baseUrl + path, { ...init, headers: { "x-api-key": key, ...init.headers } });
      await answer.body?.cancel();
      count(String(answer.status));
      // Like a client that heeds Retry-After, up to a limit.
      if (answer.status === 429 && key === apiKey) await new Promise((resolve) => setTimeout(resolve, 100));
    } catch (error) {
      count(String(error));
    }
  }

  /** Keeps this many going at a time. */
  const flood = (atOnce: number, one: () => Promise<unknown>) => () =>
    Promise.all(Array.from({ length: atOnce }, async () => {
      while (!signal.aborted) await one();
    }));
  const at = (maker: () => Promise<unknown>): Maker => () => Promise.resolve(maker);

  const json = { "content-type": "application/json" };
  const bulkOf = (length: number, sessionId: string) =>
    JSON.stringify({
      sessionId,
      messages: Array.from({ length }, (_, i) => ({ to: people[i % people.length], text: `bulk ${i}` })),
    });
  const bulk = bulkOf(10_000, paused.sessionId);
  const file = new Blob([new Uint8Array(5_000_000)]);
  const picture = btoa("x".repeat(1_000_000));

  return {
    "100 failing webhooks with 2,000 events": async () => {
      const hooks = await failingWebhooks(api);
      await makeEvents(api, { busy, count: 500, bulkOf });
      return async () => {
        await Promise.all(hooks.map((id) => api.call("PUT", `/webhooks/${id}`, { active: true })));
        await aborted(signal);
        await Promise.all(hooks.map((id) => api.call("DELETE", `/webhooks/${id}`)));
      };
    },
    "150 filtered event streams": at(async () => {
      const streaming = Array.from({ length: STREAMS }, async () => {
        while (!signal.aborted) await stream();
      });
      const feeding = flood(1, async () => {
        await makeEvents(api, { busy, count: TEXTS_AT_ONCE, bulkOf });
        await new Promise((resolve) => setTimeout(resolve, TEXTS_EVERY_MS));
      })();
      await Promise.all([...streaming, feeding]);
    }),
    "bulks of 10,000": at(flood(4, () => ask("/messages/send/bulk", { method: "POST", headers: json, body: bulk }))),
    "uploads of 5 MB": at(flood(8, () => {
      const form = new FormData();
      form.set("sessionId", paused.sessionId);
      form.set("to", people[0]!);
      form.set("file", file, "large.bin");
      return ask("/messages/send/file", { method: "POST", body: form });
    })),
    "incoming files of 1 MB": at(flood(2, async () => {
      const incoming = { to: busy.number, file: picture, filename: "large.bin", mimetype: "application/zip" };
      await control.call("POST", `/phones/${people[0]}/messages`, incoming);
      count("sent");
    })),
    "queue views of 1,000": at(flood(16, () => ask(`/sessions/${paused.sessionId}/queue?limit=1000`))),
    "history pages of 100": at(
      flood(16, () => ask(`/messages/history?limit=100&page=${1 + Math.floor(Math.random() * 50)}`)),
    ),
    "wrong keys": at(flood(32, () => ask("/account", {}, `pk_${crypto.randomUUID()}`))),
    "429s": at(flood(32, () => ask("/account", {}, setting.limitedKey))),
    "a flapping line": at(flood(1, async () => {
      await control.call("POST", "/faults", { line: flapping.number, kind: "drop" });
      count("dropped");
      await new Promise((resolve) => setTimeout(resolve, FLAP_MS));
    })),
  };

  /** Streams of events that never come, read from the oldest on. */
  async function stream(): Promise<void> {
    try {
      const answer = await fetch(`${baseUrl}/events/stream?types=session.restricted`, {
        headers: { "x-api-key": apiKey },
        signal,
      });
      count(String(answer.status));
      if (answer.status === 200) { for await (const _ of answer.body!); }
      else await answer.body?.cancel();
    } catch (error) {
      if (!signal.aborted) count(String(error));
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

async function failingWebhooks(api: Client): Promise<string[]> {
  const made = await Promise.all(Array.from({ length: FAILING_WEBHOOKS }, async () => {
    const { data } = await api.call("POST", "/webhooks", { url: NOWHERE });
    await api.call("PUT", `/webhooks/${data.id}`, { active: false });
    return data.id as string;
  }));
  return made;
}

/** Sends this many texts and waits until they have left: each causes an event when sent, and one when delivered. */
async function makeEvents(
  api: Client,
  { busy, count, bulkOf }: { busy: Line; count: number; bulkOf: (length: number, sessionId: string) => string },
): Promise<void> {
  const { bulkId } = await api.call("POST", "/messages/send/bulk", JSON.parse(bulkOf(count, busy.sessionId)));
  for (;;) {
    const { data } = await api.call("GET", `/bulks/${bulkId}`);
    if (data.sent + data.failed === data.total) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
