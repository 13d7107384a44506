/**
 * The bell on Deno KV's queue, in an in-memory database of its own: a full disk would end a process whose queue is on
 * that disk (docs/decisions/0005-bell-on-a-queue-in-memory.md). A crash loses all pending rings, as the port allows.
 *
 * The queue delivers up to 150 ms late. Each ring is therefore enqueued to arrive early, and has a timer on the runtime's
 * clock.
 */
import type { Runtime } from "../../runtime.ts";
import type { OwnBell } from "../bell.ts";

/** How early a ring leaves the queue; rings nearer than this are not enqueued. */
const LEAD_MS = 200;
/** Deno KV refuses delays of more than 30 days; later rings are enqueued again when this one is due. */
const LONGEST_DELAY_MS = 30 * 24 * 3_600_000;
/** A ring this late is considered lost and no longer suppresses later ones. */
const LOST_AFTER_MS = 1_000;

/** The part of `Deno.Kv` that the bell uses. */
type Queue = Pick<Deno.Kv, "enqueue" | "listenQueue" | "close">;

interface Ring {
  topic: string;
  atMs: number;
}

type Hearers = Set<{ wake: (topic: string) => void }>;

/** Opens a bell for this process. */
export async function openDenoKvBell(options: { runtime: Pick<Runtime, "clock" | "log"> }): Promise<OwnBell> {
  return denoKvBell(await Deno.openKv(":memory:"), options);
}

/** Returns a bell on a queue that nothing else uses. */
export function denoKvBell(queue: Queue, { runtime }: { runtime: Pick<Runtime, "clock" | "log"> }): OwnBell {
  const { clock, log } = runtime;
  /** By prefix: a ring must not ask each of ten thousand webhooks whether it is meant. */
  const hearers = new Map<string, Hearers>();
  /** When each topic rings next. Any other delivery from the queue or a timer was superseded by an earlier ring. */
  const times = new Map<string, number>();
  /** Cancels the timer of a topic's ring. */
  const timers = new Map<string, () => void>();

  function wakeAll(prefix: string, topic: string): void {
    for (const { wake } of hearers.get(prefix) ?? []) {
      try {
        wake(topic);
      } catch (error) {
        log.error({ err: error, topic }, "a hearer of the bell failed");
      }
    }
  }

  function ring(topic: string): void {
    for (const { index } of topic.matchAll(/^|(?<=\/)|$/g)) wakeAll(topic.slice(0, index), topic);
  }

  function wait(next: Ring): void {
    const leftMs = next.atMs - clock.now();
    // The queue goes by the system's clock: after that is set back it would be late by as much.
    timers.get(next.topic)?.();
    timers.set(next.topic, clock.after(leftMs, () => due(next)));
    if (leftMs <= LEAD_MS) return;
    queue.enqueue(next, { delay: Math.min(leftMs - LEAD_MS, LONGEST_DELAY_MS) }).catch((error) => {
      // Only a closed queue refuses. Sweeps make up for the lost ring.
      log.warn({ err: error, topic: next.topic }, "a ring could not be set");
    });
  }

  /** Called when a ring's time has come, or nearly so. */
  function due({ topic, atMs }: Ring): void {
    if (times.get(topic) !== atMs) return;
    if (atMs > clock.now()) return wait({ topic, atMs });
    times.delete(topic);
    timers.get(topic)?.();
    timers.delete(topic);
    ring(topic);
  }

  const listening = queue.listenQueue(due);
  let isClosed = false;

  return {
    ring,
    ringAt(topic, atMs) {
      const set = times.get(topic);
      if (set !== undefined && set <= atMs && set > clock.now() - LOST_AFTER_MS) return;
      times.set(topic, atMs);
      wait({ topic, atMs });
    },
    hear(prefix, wake) {
      const hearer = { wake };
      const others: Hearers = hearers.get(prefix) ?? new Set();
      hearers.set(prefix, others.add(hearer));
      return () => {
        if (others.delete(hearer) && others.size === 0) hearers.delete(prefix);
      };
    },
    missed() {
      for (const prefix of [...hearers.keys()]) wakeAll(prefix, prefix);
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      hearers.clear();
      times.clear();
      for (const cancel of timers.values()) cancel();
      timers.clear();
      queue.close();
      await listening;
    },
  };
}
