/** A webhook's cursor over the event log: reads ahead, begins first attempts in order, knows how far all have ended. */
import type { LoggedEvent } from "../event/event.ts";
import { type EventLog, EVENTS_A_READ, orderOf } from "../event/log.ts";
import { singleFlight } from "../base/single_flight.ts";
import { wants, type WebhookRow } from "./webhook.ts";

/** First attempts of one webhook at a time: 240 a second for an endpoint that takes 100 ms. */
const PLACES = 24;
/** Events that are read and not written down yet, at most: what one webhook may hold in memory. */
const WINDOW = 512;
/** How many events that are not for this webhook may lie between the cursor on disk and the one in memory. */
const UNNOTED = 1_000;

interface LogCursorOptions {
  webhook: () => WebhookRow;
  /** Where to begin. */
  cursor: string;
  /** Orders past the cursor whose first attempt has ended and is written down. */
  done: Set<string>;
  /** Makes the first attempt; resolves when it has ended, never rejects. */
  attempt(event: LoggedEvent): Promise<void>;
  /** The cursor has come far without any attempt. */
  moved(): void;
  /** The log could not be read. */
  failed(error: unknown): void;
  stopped: AbortSignal;
}

export function makeLogCursor(events: Pick<EventLog, "following">, options: LogCursorOptions) {
  const { webhook, done, attempt, moved, failed, stopped } = options;
  let head = options.cursor;
  let unnoted = 0;
  let running = 0;
  const queue: LoggedEvent[] = [];
  const lanes = new Set<string>();
  /** Events that were read and are not written down, oldest first, each with the order just before it. */
  const open = new Map<string, string>();
  /** Whether the log may hold more than was read: from a wake-up until its end was seen. */
  let more = true;

  const mayRun = () => webhook().active && !stopped.aborted;

  async function read(): Promise<void> {
    more = true;
    begin();
    while (mayRun() && queue.length < EVENTS_A_READ && open.size < WINDOW) {
      const read = await events.following(webhook().accountId, head);
      for (const event of read) {
        const order = orderOf(event.id);
        unnoted++;
        if (wants(webhook(), event) && !done.delete(order)) {
          open.set(order, head);
          queue.push(event);
        }
        head = order;
      }
      begin();
      if (unnoted >= UNNOTED && open.size === 0) moved();
      more = read.length === EVENTS_A_READ;
      if (!more) return;
    }
  }

  function begin(): void {
    for (let i = 0; i < queue.length && running < PLACES && mayRun();) {
      const event = queue[i]!;
      const lane = laneOf(event);
      if (lanes.has(lane)) {
        i++;
        continue;
      }
      queue.splice(i, 1);
      // The subscription may have changed since the event was read.
      if (wants(webhook(), event)) void run(event, lane);
      else open.delete(orderOf(event.id));
    }
  }

  async function run(event: LoggedEvent, lane: string): Promise<void> {
    lanes.add(lane);
    running++;
    await attempt(event);
    lanes.delete(lane);
    running--;
    begin();
    if (more && queue.length < EVENTS_A_READ) void follow();
  }

  const follow = singleFlight(() => read().catch(failed));

  return {
    /** Reads what is new and begins what may begin. */
    follow: () => void follow(),
    /** The order up to which everything has ended, once these are written down. Makes room in the window. */
    after(ended: readonly LoggedEvent[]): string {
      unnoted = 0;
      for (const event of ended) open.delete(orderOf(event.id));
      if (more && open.size < WINDOW) void follow();
      const [oldest] = open.values();
      return oldest ?? head;
    },
  };
}

/** Events of one lane depend on each other: they go one at a time, in order. */
function laneOf({ event, sessionId, data }: LoggedEvent): string {
  switch (event) {
    case "message.sent":
    case "message.status":
    case "message.failed":
      return data.messageId;
    case "message.received":
    case "message.echo":
      return `${sessionId} ${data.from}`;
    default:
      return sessionId;
  }
}
