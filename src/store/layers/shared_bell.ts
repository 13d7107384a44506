/** A bell shared by many processes: each has a bell of its own, and a wire carries its rings to the others. */
import { untilStored } from "../kv.ts";
import { type Runtime, sleep } from "../../runtime.ts";
import type { Bell } from "../bell.ts";

/** After sending, rings are collected this long: under load every commit rings, and each send wakes all processes. */
const GATHER_MS = 10;

/** What a wire delivers. */
interface WireEvents {
  /** Another process rang. */
  rang(topic: string): void;
  /** Rings of other processes may have been lost. */
  missed(): void;
}

interface Wire {
  /** Sends the topics to all other processes. Throws StoreError. */
  send(topics: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Opens a wire, which reconnects by itself from then on. Throws StoreError. */
export type OpenWire = (events: WireEvents) => Promise<Wire>;

/**
 * Connects the process's own bell to the wire. If opening the wire throws, `own` is closed and the error is passed on.
 */
export async function shareBell(
  own: Bell,
  openWire: OpenWire,
  { runtime: { clock, log } }: { runtime: Pick<Runtime, "clock" | "log"> },
): Promise<Bell> {
  const hearers = new Set<{ prefix: string; wake: (topic: string) => void }>();
  const closing = new AbortController();
  /** Topics to send; one that rings twice in the meantime is sent once. */
  const waiting = new Set<string>();
  let sending: Promise<void> | null = null;

  const wire = await openWire({
    rang: (topic) => own.ring(topic),
    missed() {
      for (const { prefix, wake } of hearers) {
        try {
          wake(prefix);
        } catch (error) {
          log.error({ err: error, prefix }, "a hearer of the bell failed");
        }
      }
    },
  }).catch(async (error) => {
    await own.close();
    throw error;
  });

  /** Sends until no topic is left; rings of the same turn of the event loop are sent together. */
  async function send(): Promise<void> {
    await null;
    try {
      while (waiting.size > 0 && !closing.signal.aborted) {
        const topics = [...waiting];
        waiting.clear();
        await untilStored(() => wire.send(topics), { clock, signal: closing.signal });
        await sleep(clock, GATHER_MS, closing.signal);
      }
    } catch (error) {
      if (!closing.signal.aborted) log.error({ err: error }, "a ring could not be sent");
    } finally {
      // Synchronously, not in a `finally` of the promise: a ring in between would be left until the next one.
      sending = null;
    }
  }

  return {
    ring(topic) {
      own.ring(topic);
      waiting.add(topic);
      sending ??= send();
    },
    ringAt: (topic, atMs) => own.ringAt(topic, atMs),
    hear(prefix, wake) {
      const hearer = { prefix, wake };
      hearers.add(hearer);
      const deafen = own.hear(prefix, wake);
      return () => {
        hearers.delete(hearer);
        deafen();
      };
    },
    async close() {
      closing.abort();
      hearers.clear();
      await own.close();
      await sending;
      await wire.close();
    },
  };
}
