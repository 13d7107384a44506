/**
 * How many connections are open: in all, and from one address. Whoever comes when all seats are taken gets that of the
 * connection that has been without a request for longest, so that silent and slow clients give way to honest ones; when
 * all of them are at work, the new one is turned away. Without this, a process that has reached its limit of open files
 * can accept nothing and open no file.
 */
import { readFile } from "node:fs/promises";
import { subscriberOf } from "../../base/addresses.ts";

export interface Seat {
  /** A request has begun. */
  work(): void;
  /** Its answer has ended. */
  rest(): void;
  /** The connection has ended. */
  leave(): void;
}

interface SeatLimits {
  inAll: number;
  /** Of one address that `isShared` does not know. */
  ofAddress: number;
  /** Whether many clients come from this address: a proxy. */
  isShared(address: string): boolean;
}

interface Taken {
  address: string;
  close: () => void;
}

/** Files, the store, outgoing connections and lines need some too. */
const KEPT_FREE = 256;
const FEWEST = 64;
const MOST = 10_000;
const ALL_WHERE_UNKNOWN = 2_000;

/** For clients that never get as far as the app. */
export const NO_SEAT = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n" +
  "retry-after: 1\r\nconnection: close\r\n\r\n" +
  JSON.stringify({
    type: "about:blank",
    title: "Too many connections",
    status: 503,
    code: "too_many_connections",
    detail: "As many connections are open as the gateway takes; try again in a second.",
  });

/** As many as the process may have files open, less what it needs itself. */
export async function seatsForFiles(): Promise<number> {
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const files = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? NaN);
  if (Number.isNaN(files)) return ALL_WHERE_UNKNOWN;
  return Math.min(MOST, Math.max(FEWEST, files - KEPT_FREE));
}

export type Seats = ReturnType<typeof makeSeats>;

export function makeSeats({ inAll, ofAddress, isShared }: SeatLimits) {
  /** Of each address, in the order in which they came to rest. */
  const resting = new Set<Taken>();
  const counts = new Map<string, number>();
  let taken = 0;

  /** Ends the connection that has rested for longest, among those; false when all are at work. */
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
    /** A seat for a connection from that address, which `close` ends; null when there is none. */
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
    /** How many are taken. */
    taken: () => taken,
  };
}
