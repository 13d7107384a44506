/** Waits, before a client is answered, until a line has reached its wanted state (promise 5). */
import { readUntil } from "../base/within.ts";
import type { Clock } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { DELETED_REASON, type Line, type LineStatus, NOTHING_TO_LINK, type Wanted } from "./line.ts";
import type { LiveLines } from "./live.ts";
import { lineKeys } from "./rows.ts";

/** How long the answer waits at most. */
const REACHED_WITHIN_MS = 5_000;

/** The statuses in which a wanted state is reached. A deletion is complete when the row is gone. */
const LEADS_TO: Readonly<Record<Wanted, readonly LineStatus[]>> = {
  connected: ["connected", "qr", "pairing"],
  paused: ["disconnected", "logged_out"],
  exporting: ["disconnected", "logged_out"],
  logged_out: ["logged_out"],
  exported: ["logged_out"],
  deleted: [],
};

/** The fields of the last record of a deleted line. */
const DELETED = { ...NOTHING_TO_LINK, status: "logged_out", linked: false, reason: DELETED_REASON } as const;

/**
 * Resolves to the line once `done` is true of it, it is gone, or a few seconds have passed.
 * `last` is how it was last read.
 */
export type Until = (last: Line, done: (now: Line) => boolean) => Promise<Line>;

export function makeUntil({ kv, clock, live }: { kv: Kv; clock: Clock; live: Pick<LiveLines, "watch"> }): Until {
  return async (last, done) => {
    let line = last;
    const read = async () => {
      const { value } = await kv.get(lineKeys.line(last.id));
      line = value ?? line;
      return value;
    };
    const now = await readUntil(read, (row) => row === null || done(row), {
      clock,
      withinMs: REACHED_WITHIN_MS,
      watch: (changed) => live.watch(last.id, changed),
    });
    return now ?? { ...line, ...DELETED };
  };
}

/**
 * Returns whether the line has reached the state that was wanted in that generation, or has halted on the way there.
 */
export function isReached(now: Line, { generation, wanted }: Line): boolean {
  return now.observedGeneration >= generation && (LEADS_TO[wanted].includes(now.status) || now.halted);
}
