/**
 * Whose a line is: one process brings it up, and all that it writes for the line goes through the line's own store,
 * which refuses once the line is somebody else's (promise 9).
 */
import type { Leases } from "../cluster/leases.ts";
import type { Kv } from "../store/kv.ts";
import type { Line } from "./line.ts";
import { lineKeys } from "./rows.ts";

export interface Ownership {
  /** The lines of this process as their rows stand; one that is its own and has no row is gone. */
  lines(): AsyncIterable<Line>;
  /** The store as the line's owner writes it; null when the line is not this process's. */
  storeOf(lineId: string): Kv | null;
  /** The line's row is gone, and with it what there was to own. */
  gone(lineId: string): Promise<void>;
}

/** On one machine: the data folder's lock is the lease on all there is, and costs no commit anything. */
export function soleOwnership(kv: Kv): Ownership {
  return {
    async *lines() {
      for await (const { value } of kv.list({ prefix: lineKeys.lines() })) yield value;
    },
    storeOf: () => kv,
    gone: () => Promise.resolve(),
  };
}

/** On a store that many share: the lines whose leases this process holds, each behind its fence. */
export function sharedOwnership(leases: Leases): Ownership {
  return {
    lines: () => leases.rows(lineKeys.line),
    storeOf: (lineId) => leases.storeOf(lineId),
    gone: (lineId) => leases.gone(lineId),
  };
}
