/**
 * Limits open connections, in total and per address. When all slots are taken, a new connection replaces the one that
 * has been idle for longest, so that silent and slow clients give way to honest ones. If none is idle, the new one is
 * refused. Without these limits, a process at its limit of open files could neither accept a connection nor open a
 * file.
 */
import { readFile } from "node:fs/promises";
import { subscriberOf } from "../../base/addresses.ts";

export interface Slot {
  /** Called when a request has begun. */
  work(): void;
  /** Called when its answer is complete: the connection is idle. */
  rest(): void;
  /** Called when the connection has closed. Idempotent. */
  leave(): void;
}

interface SlotLimits {
  inAll: number;
  /** Limit per address, except those for which `isShared` is true. */
  ofAddress: number;
  /** Whether many clients share this address: that of a proxy. */
  isShared(address: string): boolean;
}

interface Taken {
  address: string;
  close: () => void;
}

/** Open files left for the store, media, outgoing connections and lines. */
const KEPT_FREE = 256;
const FEWEST = 64;
const MOST = 10_000;
const ALL_WHERE_UNKNOWN = 2_000;

/** The raw answer to a connection that is refused. */
export const NO_SLOT = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n" +
  "retry-after: 1\r\nconnection: close\r\n\r\n" +
  JSON.stringify({
    type: "about:blank",
    title: "Too many connections",
    status: 503,
    code: "too_many_connections",
    detail: "The gateway's limit of open connections is reached; try again in a second.",
  });

/** Resolves to the process's limit of open files, less what the gateway itself needs. */
export async function slotsForFiles(): Promise<number> {
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const files = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? NaN);
  if (Number.isNaN(files)) return ALL_WHERE_UNKNOWN;
  return Math.min(MOST, Math.max(FEWEST, files - KEPT_FREE));
}

export type Slots = ReturnType<typeof makeSlots>;

export function makeSlots({ inAll, ofAddress, isShared }: SlotLimits) {
  /** Idle connections, the one that has been idle for longest first. */
  const resting = new Set<Taken>();
  const counts = new Map<string, number>();
  let taken = 0;

  /** Closes the longest idle connection that `fits`; false if there is none. */
  function makeRoom(fits: (slot: Taken) => boolean): boolean {
    for (const slot of resting) {
      if (!fits(slot)) continue;
      free(slot);
      slot.close();
      return true;
    }
    return false;
  }

  const left = new WeakSet<Taken>();
  function free(slot: Taken): void {
    if (left.has(slot)) return;
    left.add(slot);
    resting.delete(slot);
    taken--;
    const count = counts.get(slot.address)! - 1;
    if (count === 0) counts.delete(slot.address);
    else counts.set(slot.address, count);
  }

  return {
    /** Takes a slot for a connection from `peer`; null if there is none. `close` closes the connection. */
    take(peer: string, close: () => void): Slot | null {
      const address = subscriberOf(peer);
      const full = !isShared(peer) && (counts.get(address) ?? 0) >= ofAddress;
      if (full && !makeRoom((slot) => slot.address === address)) return null;
      if (taken >= inAll && !makeRoom(() => true)) return null;
      const slot: Taken = { address, close };
      taken++;
      counts.set(address, (counts.get(address) ?? 0) + 1);
      resting.add(slot);
      return {
        work: () => void resting.delete(slot),
        rest: () => {
          if (!left.has(slot)) resting.add(slot);
        },
        leave: () => free(slot),
      };
    },
    /** The number of slots taken. */
    taken: () => taken,
  };
}
