/** `paloma listen`: prints events during development, from the stream or through a real webhook. */
import type { Command } from "commander";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { unlessMalformed } from "../base/retry.ts";
import { type Clock, sleep, systemClock } from "../runtime.ts";
import { httpClient, type Json, reasonOf, refusal, unreachable } from "./client.ts";
import { describeEvent } from "./describe_event.ts";
import { Exit, jsonLine, print, printError } from "./output.ts";
import { keyOf, type KeyOptions, withKey } from "./key.ts";
import { apiUrl, assertHttp } from "./settings.ts";
import { untilAsked } from "./signals.ts";
import { openTemporaryWebhook, type WebhookRequest } from "./temporary_webhook.ts";

interface ListenOptions extends KeyOptions {
  url?: string;
  events?: string;
  session?: string;
  after?: string;
  webhook?: boolean;
  port?: string;
  forward?: string;
  json?: boolean;
}

export function addListenCommand(root: Command): void {
  const command = root.command("listen")
    .description("print events as they happen, from the stream or, with --webhook, from a real webhook")
    .option("--url <url>", "base URL of the API, which ends in /v1 (default: the gateway on this machine)")
    .option("--events <names>", "event names, separated by commas (default: all)")
    .option("--session <id>", "only this session (default: all)")
    .option("--after <cursor>", "ID of the last event seen, `now`, or `start` for the oldest stored one (default: now)")
    .option("--webhook", "register a webhook while this runs, and check the signatures of each request")
    .option("--port <port>", "with --webhook: its port on 127.0.0.1 (default: any)")
    .option("--forward <url>", "with --webhook: forward each request unchanged, and return that endpoint's status")
    .option("--json", "print one line of JSON per event");
  withKey(command).action(async (options: ListenOptions) => {
    if (options.forward && !options.webhook) throw new Exit(2, "--forward needs --webhook.");
    if (options.forward) assertHttp("--forward", options.forward);
    const { port = "0" } = options;
    if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
      throw new Exit(2, `--port: "${port}" is not a port number (0 to 65535)`);
    }
    if (options.port && !options.webhook) throw new Exit(2, "--port needs --webhook: --url chooses the gateway.");
    if (options.after && options.webhook) throw new Exit(2, "--after is for the stream: a webhook gets new events.");
    // `--port` is the webhook's here, not the setting of that name.
    const asked = {
      ...options,
      key: await keyOf({ key: options.key, account: options.account }),
      url: apiUrl(options.url, {}),
    };
    return await (options.webhook ? listenByWebhook(asked) : listenToStream(asked, systemClock));
  });
}

type Asked = ListenOptions & { key: string; url: string };

async function listenToStream({ url, key, events, session, after = "now", json }: Asked, clock: Clock): Promise<void> {
  const ended = new AbortController();
  void untilAsked().then(() => ended.abort());
  const stream = followEvents({
    clock,
    baseUrl: url,
    apiKey: key,
    types: events ?? null,
    sessionId: session ?? null,
    after: after === "start" ? null : after,
    signal: ended.signal,
    opened: () => printError(`Listening to ${url}. Press Ctrl-C to stop.`),
    broke: (reason, pauseMs) => printError(`The stream broke (${reason}); reconnecting in ${pauseMs / 1000} s.`),
  });
  for await (const event of stream) {
    print(json ? jsonLine(event) : `${timeOf(event.createdAt)} ${describeEvent(event)}`);
  }
}

async function listenByWebhook({ url, key, events, session, port = "0", forward, json }: Asked): Promise<void> {
  let wrong = 0;
  // Before the webhook is created: a Ctrl-C during its creation would otherwise leave it behind.
  const asked = untilAsked();
  const unread = Promise.withResolvers<never>();
  const webhook = await openWebhook({
    api: httpClient(url, { "x-api-key": key }),
    events: events?.split(",").map((name) => name.trim()) ?? null,
    sessionId: session ?? null,
    port: Number(port),
    forward: forward ?? null,
    received(request) {
      if (!request.signature || !request.standardSignature) wrong++;
      try {
        print(json ? jsonOf(request) : lineOf(request));
      } catch (error) {
        unread.reject(error);
      }
    },
  });
  try {
    printError(`Webhook ${webhook.id} listens on ${webhook.url}. Press Ctrl-C to remove it.`);
    printError(`Its secret, by which an endpoint verifies signatures: ${webhook.secret}`);
    await Promise.race([asked, unread.promise]);
  } finally {
    await webhook.end();
  }
  if (wrong > 0) throw new Exit(1, `${wrong} requests had a wrong signature.`);
}

/** Throws Exit, with advice if the gateway may not call this machine. */
async function openWebhook(options: Parameters<typeof openTemporaryWebhook>[0]) {
  try {
    return await openTemporaryWebhook(options);
  } catch (error) {
    if (!(error instanceof Exit) || !error.message.includes("validation_failed")) throw error;
    throw new Exit(
      1,
      `${error.message}\nThe gateway may call this machine only if PALOMA_OUTBOUND_ALLOW contains 127.0.0.1.`,
    );
  }
}

function jsonOf({ id, body, signature, standardSignature, forwarded }: WebhookRequest): string {
  return jsonLine({ id, ...parsed(body), verified: { signature, standardSignature }, forwarded });
}

function lineOf({ body, signature, standardSignature, forwarded }: WebhookRequest): string {
  const mark = (right: boolean) => right ? "✓" : "✗";
  const marks = `${mark(signature)} x-webhook-signature ${mark(standardSignature)} webhook-signature`;
  const event = parsed(body);
  const shown = event.event ? describeEvent(event) : "no event";
  return `${marks}${forwarded === null ? "" : ` → ${forwarded}`}  ${shown}`;
}

function parsed(body: string): Json {
  return unlessMalformed(() => JSON.parse(body), {});
}

/** Returns the time of day, UTC, of an ISO timestamp. */
function timeOf(timestamp: string): string {
  return timestamp.slice(11, 19);
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

interface FollowOptions {
  clock: Clock;
  /** `http://HOST:PORT/v1`. */
  baseUrl: string;
  apiKey: string;
  types: string | null;
  sessionId: string | null;
  /** Id of the last event seen, `now`, or null for the oldest that is kept. */
  after: string | null;
  signal: AbortSignal;
  /** Called once, when the stream is open. */
  opened(): void;
  /** Called at each break, before the stream is opened again after `pauseMs`. */
  broke(reason: string, pauseMs: number): void;
}

/**
 * Yields the feed's events until the signal aborts; reconnects after breaks. Throws Exit 1 if the first connection
 * fails.
 */
export async function* followEvents(options: FollowOptions): AsyncGenerator<Json> {
  const { clock, signal } = options;
  let { after } = options;
  let pauseMs = 0;
  let opened = false;
  while (!signal.aborted) {
    try {
      // Resolved to a cursor at the start, so that a break does not skip events.
      if (after === "now") after = (await (await ask(options, "/events?after=now&limit=1")).json()).next;
      const response = await ask(options, streamPath(options, after));
      if (!opened) options.opened();
      opened = true;
      const received = response.body!.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
      for await (const { id, data } of received) {
        pauseMs = 0;
        after = id ?? after;
        yield JSON.parse(data);
      }
      if (!signal.aborted) options.broke("the gateway ended the stream", pauseMs);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Exit) throw error;
      const reason = reasonOf(error);
      if (!opened) throw new Exit(1, unreachable(options.baseUrl, reason));
      options.broke(reason, pauseMs);
    }
    await sleep(clock, pauseMs, signal);
    pauseMs = Math.min(Math.max(FIRST_PAUSE_MS, pauseMs * 2), LONGEST_PAUSE_MS);
  }
}

function streamPath({ types, sessionId }: FollowOptions, after: string | null): string {
  const query = new URLSearchParams();
  if (types !== null) query.set("types", types);
  if (sessionId !== null) query.set("sessionId", sessionId);
  if (after !== null) query.set("after", after);
  return `/events/stream?${query}`;
}

async function ask({ baseUrl, apiKey, signal }: FollowOptions, path: string): Promise<Response> {
  const response = await fetch(baseUrl + path, { headers: { "x-api-key": apiKey }, signal });
  if (response.status === 200) return response;
  const answer = refusal(response.status, await response.text());
  // Retries help with a gateway in trouble, but not with a wrong key.
  if (response.status >= 500) throw new Error(`it answered ${answer}`);
  throw new Exit(1, `The gateway answered ${answer}`);
}
