/**
 * Limits open connections, in total and per address. When all seats are taken, a new connection replaces the one that
 * has been idle for longest, so that silent and slow clients give way to honest ones. If none is idle, the new one is
 * refused. Without these limits, a process at its limit of open files could neither accept a connection nor open a
 * file.
 */
import { readFile } from "node:fs/promises";
import { subscriberOf } from "../../base/addresses.ts";

export interface Seat {
  /** Called when a request has begun. */
  work(): void;
  /** Called when its answer is complete: the connection is idle. */
  rest(): void;
  /** Called when the connection has closed. Idempotent. */
  leave(): void;
}

interface SeatLimits {
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
export const NO_SEAT = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n" +
  "retry-after: 1\r\nconnection: close\r\n\r\n" +
  JSON.stringify({
    type: "about:blank",
    title: "Too many connections",
    status: 503,
    code: "too_many_connections",
    detail: "The gateway's limit of open connections is reached; try again in a second.",
  });

/** Resolves to the process's limit of open files, less what the gateway itself needs. */
export async function seatsForFiles(): Promise<number> {
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const files = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? NaN);
  if (Number.isNaN(files)) return ALL_WHERE_UNKNOWN;
  return Math.min(MOST, Math.max(FEWEST, files - KEPT_FREE));
}

export type Seats = ReturnType<typeof makeSeats>;

export function makeSeats({ inAll, ofAddress, isShared }: SeatLimits) {
  /** Idle connections, the one that has been idle for longest first. */
  const resting = new Set<Taken>();
  const counts = new Map<string, number>();
  let taken = 0;

  /** Closes the longest idle connection that `fits`; false if there is none. */
  function makeRoom(fits: (seat: Taken) => boolean): boolean {
    for (const seat of resting) {
      if (!fits(seat)) continue;
      free(seat);
      seat.close();
      return true;
    }
    return false;
  }

  const left = new WeakSet<Taken>();
  function free(seat: Taken): void {
    if (left.has(seat)) return;
    left.add(seat);
    resting.delete(seat);
    taken--;
    const count = counts.get(seat.address)! - 1;
    if (count === 0) counts.delete(seat.address);
    else counts.set(seat.address, count);
  }

  return {
    /** Takes a seat for a connection from `peer`; null if there is none. `close` closes the connection. */
    take(peer: string, close: () => void): Seat | null {
      const address = subscriberOf(peer);
      const full = !isShared(peer) && (counts.get(address) ?? 0) >= ofAddress;
      if (full && !makeRoom((seat) => seat.address === address)) return null;
      if (taken >= inAll && !makeRoom(() => true)) return null;
      const seat: Taken = { address, close };
      taken++;
      counts.set(address, (counts.get(address) ?? 0) + 1);
      resting.add(seat);
      return {
        work: () => void resting.delete(seat),
        rest: () => {
          if (!left.has(seat)) resting.add(seat);
        },
        leave: () => free(seat),
      };
    },
    /** The number of seats taken. */
    taken: () => taken,
  };
}
