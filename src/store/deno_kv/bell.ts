/**
 * The bell on Deno KV's queue, in a database of its own in memory: a full disk ends a process whose queue lies on it
 * (docs/decisions/0005-bell-on-a-queue-in-memory.md). After a crash it has forgotten everything, as the port allows.
 *
 * The queue delivers up to 150 ms late. So each ring is enqueued for a little earlier, and waits for the rest of its
 * time on the runtime's clock.
 */
import type { Runtime } from "../../runtime.ts";
import type { Bell } from "../bell.ts";

/** How much earlier a ring is taken from the queue; nearer ones need no queue. */
const LEAD_MS = 200;
/** Deno KV refuses a delay of more than 30 days; what lies further ahead is enqueued again then. */
const LONGEST_DELAY_MS = 30 * 24 * 3_600_000;
/** A ring that is so late was lost: it stands in the way of no other. */
const LOST_AFTER_MS = 1_000;

/** The part of `Deno.Kv` that the bell stands on. */
type Queue = Pick<Deno.Kv, "enqueue" | "listenQueue" | "close">;

interface Ring {
  topic: string;
  atMs: number;
}

/** Opens a bell for this process. */
export async function openDenoKvBell(options: { runtime: Pick<Runtime, "clock" | "log"> }): Promise<Bell> {
  return denoKvBell(await Deno.openKv(":memory:"), options);
}

/** The bell on a queue that no one else uses. */
export function denoKvBell(queue: Queue, { runtime }: { runtime: Pick<Runtime, "clock" | "log"> }): Bell {
  const { clock, log } = runtime;
  const hearers = new Set<{ prefix: string; wake: (topic: string) => void }>();
  /** When each topic rings next. What else comes from the queue or a timer was replaced by an earlier ring. */
  const times = new Map<string, number>();
  /** Timers of rings that are near, each with what cancels it. */
  const near = new Map<string, () => void>();

  function ring(topic: string): void {
    for (const { prefix, wake } of hearers) {
      if (!topic.startsWith(prefix)) continue;
      try {
        wake(topic);
      } catch (error) {
        log.error({ err: error, topic }, "a hearer of the bell failed");
      }
    }
  }

  function wait(next: Ring): void {
    const leftMs = next.atMs - clock.now();
    if (leftMs <= LEAD_MS) return waitOnClock(next, leftMs);
    queue.enqueue(next, { delay: Math.min(leftMs - LEAD_MS, LONGEST_DELAY_MS) }).catch((error) => {
      // Only a closed queue refuses: sweeps ring in its place.
      log.warn({ err: error, topic: next.topic }, "a ring could not be set");
    });
  }

  function waitOnClock(next: Ring, leftMs: number): void {
    near.get(next.topic)?.();
    near.set(next.topic, clock.after(leftMs, () => due(next)));
  }

  /** Its time has come, or nearly. */
  function due({ topic, atMs }: Ring): void {
    if (times.get(topic) !== atMs) return;
    if (atMs > clock.now()) return wait({ topic, atMs });
    times.delete(topic);
    near.delete(topic);
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
      const hearer = { prefix, wake };
      hearers.add(hearer);
      return () => hearers.delete(hearer);
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      times.clear();
      for (const cancel of near.values()) cancel();
      near.clear();
      queue.close();
      await listening;
    },
  };
}
