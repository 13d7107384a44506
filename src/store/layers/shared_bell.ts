/** A bell shared by many processes: each has a bell of its own, and a wire carries its rings to the others. */
import { singleFlight } from "../../base/single_flight.ts";
import { type Runtime, sleep } from "../../runtime.ts";
import type { Bell, OwnBell } from "../bell.ts";
import { untilStored } from "../kv.ts";

/** After sending, rings are collected this long: under load every commit rings, and each send wakes all processes. */
const GATHER_MS = 10;

/** Where a wire delivers what other processes rang. */
type WireEvents = Pick<OwnBell, "ring" | "missed">;

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
  own: OwnBell,
  openWire: OpenWire,
  { runtime: { clock, log } }: { runtime: Pick<Runtime, "clock" | "log"> },
): Promise<Bell> {
  const closing = new AbortController();
  /** Topics to send; one that rings twice in the meantime is sent once. */
  const waiting = new Set<string>();

  const wire = await openWire(own).catch(async (error) => {
    await own.close();
    throw error;
  });

  const send = singleFlight(async () => {
    // Rings of the same turn of the event loop are sent together.
    await null;
    const topics = [...waiting];
    waiting.clear();
    if (topics.length === 0 || closing.signal.aborted) return;
    try {
      await untilStored(() => wire.send(topics), { clock, signal: closing.signal });
      await sleep(clock, GATHER_MS, closing.signal);
    } catch (error) {
      if (!closing.signal.aborted) log.error({ err: error }, "a ring could not be sent");
    }
  });

  return {
    ...own,
    ring(topic) {
      own.ring(topic);
      waiting.add(topic);
      void send();
    },
    async close() {
      closing.abort();
      await own.close();
      await send();
      await wire.close();
    },
  };
}
