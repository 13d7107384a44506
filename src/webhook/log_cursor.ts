/**
 * A webhook's cursor over the event log: reads ahead, starts first attempts in order, tracks how far all have ended.
 */
import type { LoggedEvent } from "../event/event.ts";
import { type EventLog, EVENTS_A_READ, orderOf } from "../event/event_log.ts";
import { singleFlight } from "../base/single_flight.ts";
import type { Clock } from "../runtime.ts";
import { sizeBound } from "../store/limits.ts";
import type { Fate } from "./attempts.ts";
import { wants, type WebhookRow } from "./webhook.ts";

/** Concurrent first attempts of one webhook: 240 a second for an endpoint that takes 100 ms. */
const PLACES = 24;
/**
 * Most events that one webhook holds in memory, and most bytes of them: read, with an outcome not yet written. Of one
 * chat thousands may wait before they hold up the others.
 */
const WINDOW = { events: 4_096, bytes: 2 * 1024 ** 2 };
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
  lane: string;
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
  /** Lanes with an attempt in progress. */
  const lanes = new Set<string>();
  /** Events in the window, oldest first, each with the order before it. */
  const open = new Map<string, { before: string; bytes: number }>();
  /** Bytes of the events in the window. */
  let held = 0;
  /** Whether the log may hold unread events: from a wake-up until its end has been reached. */
  let more = true;

  const mayRun = () => webhook().active && !stopped.aborted;
  const hasRoom = () => open.size < WINDOW.events && held < WINDOW.bytes;
  /** Whether to read on: for the next attempts, or past lanes that are busy. */
  const isShort = () => hasRoom() && (queue.length < EVENTS_A_READ || running < PLACES);

  async function read(): Promise<void> {
    more = true;
    begin();
    while (mayRun() && isShort()) {
      const read = await events.following(webhook().accountId, head);
      const readAt = clock.now();
      for (const event of read) {
        const order = orderOf(event.id);
        unnoted++;
        if (wants(webhook(), event) && !done.delete(order)) {
          const bytes = Math.min(sizeBound(event.data), WINDOW.bytes);
          open.set(order, { before: head, bytes });
          held += bytes;
          queue.push({ event, lane: laneOf(event), readAt });
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
      if (lanes.has(waiting.lane)) {
        i++;
        continue;
      }
      queue.splice(i, 1);
      // The subscription may have changed since the event was read.
      if (wants(webhook(), waiting.event)) void run(waiting);
      else leave(waiting.event);
    }
  }

  async function run(waiting: Waiting): Promise<void> {
    const { event, lane, readAt } = waiting;
    lanes.add(lane);
    running++;
    const fate = await attempt(event, readAt);
    lanes.delete(lane);
    running--;
    // To the front: it precedes whatever else waits in its lane.
    if (fate === "put off") queue.unshift(waiting);
    if (fate === "gone") leave(event);
    begin();
    if (more && isShort()) void follow();
  }

  /** Removes the event from the window. */
  function leave({ id }: LoggedEvent): void {
    const order = orderOf(id);
    held -= open.get(order)?.bytes ?? 0;
    open.delete(order);
  }

  const follow = singleFlight(() => read().catch(failed));

  return {
    /** Reads new events and starts attempts as far as allowed. */
    follow: () => void follow(),
    /** Removes these events from the window; returns the order up to which everything has ended. */
    after(ended: readonly LoggedEvent[]): string {
      unnoted = 0;
      for (const event of ended) leave(event);
      if (more && hasRoom()) void follow();
      const [oldest] = open.values();
      return oldest?.before ?? head;
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
