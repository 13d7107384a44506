/** A bell that many processes share: each has a bell of its own, and a wire takes its rings to the others. */
import { untilStored } from "../retry.ts";
import { type Runtime, sleep } from "../../runtime.ts";
import type { Bell } from "../bell.ts";

/** After a ring the next ones gather for so long: under load they come with every commit, and each send is work for all. */
const GATHER_MS = 10;

/** What comes by a wire. */
interface WireEvents {
  /** Another process rang. */
  rang(topic: string): void;
  /** Rings of others may have been lost. */
  missed(): void;
}

interface Wire {
  /** Takes the topics to all other processes. Throws StoreError. */
  send(topics: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Opens a wire; it mends itself from then on. Throws StoreError. */
export type OpenWire = (events: WireEvents) => Promise<Wire>;

/** Puts the process's own bell on the wire. Throws what opening the wire throws; `own` is closed then. */
export async function shareBell(
  own: Bell,
  openWire: OpenWire,
  { runtime: { clock, log } }: { runtime: Pick<Runtime, "clock" | "log"> },
): Promise<Bell> {
  const hearers = new Set<{ prefix: string; wake: (topic: string) => void }>();
  const closing = new AbortController();
  /** Topics that wait for the wire; one that rings twice meanwhile goes once. */
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

  /** Sends until nothing waits; what rings in the same turn as the first goes with it. */
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
      // Here, and not in a `finally` of the promise: a ring in between would wait for the next one.
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
