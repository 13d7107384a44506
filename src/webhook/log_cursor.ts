/**
 * A webhook's cursor over the event log: reads ahead, starts first attempts in order, tracks how far all have ended.
 */
import type { LoggedEvent } from "../event/event.ts";
import { type EventLog, EVENTS_A_READ, orderOf } from "../event/log.ts";
import { singleFlight } from "../base/single_flight.ts";
import type { Clock } from "../runtime.ts";
import type { Fate } from "./attempts.ts";
import { wants, type WebhookRow } from "./webhook.ts";

/** Concurrent first attempts of one webhook: 240 a second for an endpoint that takes 100 ms. */
const PLACES = 24;
/** Most events that one webhook holds in memory: read, with an outcome not yet written. */
const WINDOW = 512;
/** How many unrelated events may pass before the cursor on disk is advanced. */
const UNNOTED = 1_000;

interface LogCursorOptions {
  webhook: () => WebhookRow;
  /** Order after which to begin. */
  cursor: string;
  /** Orders after the cursor whose first attempt has ended and is already written. */
  done: Set<string>;
  /** Makes the first attempt; resolves when it has ended and never rejects. */
  attempt(event: LoggedEvent, readAt: number): Promise<Fate>;
  /** Called when the cursor has advanced far without any attempt. */
  moved(): void;
  /** Called when the log could not be read. */
  failed(error: unknown): void;
  stopped: AbortSignal;
}

/** An event that waits for its first attempt. */
interface Waiting {
  event: LoggedEvent;
  /** Unix ms. */
  readAt: number;
}

export function makeLogCursor(
  { events, clock }: { events: Pick<EventLog, "following">; clock: Clock },
  options: LogCursorOptions,
) {
  const { webhook, done, attempt, moved, failed, stopped } = options;
  let head = options.cursor;
  let unnoted = 0;
  let running = 0;
  const queue: Waiting[] = [];
  const lanes = new Set<string>();
  /** Events in the window, oldest first, each with the order before it. */
  const open = new Map<string, string>();
  /** Whether the log may hold unread events: from a wake-up until its end has been reached. */
  let more = true;

  const mayRun = () => webhook().active && !stopped.aborted;

  async function read(): Promise<void> {
    more = true;
    begin();
    while (mayRun() && queue.length < EVENTS_A_READ && open.size < WINDOW) {
      const read = await events.following(webhook().accountId, head);
      const readAt = clock.now();
      for (const event of read) {
        const order = orderOf(event.id);
        unnoted++;
        if (wants(webhook(), event) && !done.delete(order)) {
          open.set(order, head);
          queue.push({ event, readAt });
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
      const waiting = queue[i]!;
      const lane = laneOf(waiting.event);
      if (lanes.has(lane)) {
        i++;
        continue;
      }
      queue.splice(i, 1);
      // The subscription may have changed since the event was read.
      if (wants(webhook(), waiting.event)) void run(waiting, lane);
      else open.delete(orderOf(waiting.event.id));
    }
  }

  async function run(waiting: Waiting, lane: string): Promise<void> {
    lanes.add(lane);
    running++;
    const fate = await attempt(waiting.event, waiting.readAt);
    lanes.delete(lane);
    running--;
    // To the front: it precedes whatever else waits in its lane.
    if (fate === "put off") queue.unshift(waiting);
    if (fate === "gone") open.delete(orderOf(waiting.event.id));
    begin();
    if (more && queue.length < EVENTS_A_READ) void follow();
  }

  const follow = singleFlight(() => read().catch(failed));

  return {
    /** Reads new events and starts attempts as far as allowed. */
    follow: () => void follow(),
    /** Removes these events from the window; returns the order up to which everything has ended. */
    after(ended: readonly LoggedEvent[]): string {
      unnoted = 0;
      for (const event of ended) open.delete(orderOf(event.id));
      if (more && open.size < WINDOW) void follow();
      const [oldest] = open.values();
      return oldest ?? head;
    },
  };
}

/** Returns the event's lane. Events in one lane depend on each other and are delivered one at a time, in order. */
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
