/**
 * Ownership of lines: one process runs a line, and writes for it through the line's own store. That store rejects
 * writes once another process owns the line (promise 9).
 */
import type { Leases } from "../cluster/leases.ts";
import type { Kv } from "../store/kv.ts";
import type { Line } from "./line.ts";
import { lineKeys } from "./rows.ts";

export interface Ownership {
  /** Yields the rows of this process's lines. A line of this process without a row has been deleted. */
  lines(): AsyncIterable<Line>;
  /** Returns the store for writes as the line's owner; null if the line is not this process's. */
  storeOf(lineId: string): Kv | null;
  /** Releases the ownership of a line whose row is gone. */
  gone(lineId: string): Promise<void>;
}

/** Ownership on one machine: the data folder's lock covers all lines, so commits need no fencing token. */
export function soleOwnership(kv: Kv): Ownership {
  return {
    async *lines() {
      for await (const { value } of kv.list({ prefix: lineKeys.lines() })) yield value;
    },
    storeOf: () => kv,
    gone: () => Promise.resolve(),
  };
}

/** Ownership on a shared store: the lines whose leases this process holds, each written with its fencing token. */
export function sharedOwnership(leases: Leases): Ownership {
  return {
    lines: () => leases.rows(lineKeys.line),
    storeOf: (lineId) => leases.storeOf(lineId),
    gone: (lineId) => leases.gone(lineId),
  };
}
