/**
 * What the lines met on the network, counted by name and hour: refusals, stanzas without a handler, announced versions,
 * reasons of closed connections. A change of the network shows here first. Holds no numbers, texts, ids or keys.
 */
import type { Clock } from "../runtime.ts";
import { deleteRange } from "../store/delete_range.ts";
import { Change, key, type Kv, prefix } from "../store/kv.ts";

/**
 * - `version`: announced at a connection, with its source
 * - `closed`: why a connection ended, with the network's code
 * - `refused`: a message, by the network's code
 * - `unacknowledged`: the network ended a connection over a stanza of this class
 * - `unhandled`: a stanza, notification or `ib` child that nobody handles
 */
type EncounterKind = "version" | "closed" | "refused" | "unacknowledged" | "unhandled";

const HOUR_MS = 60 * 60_000;
/** Covers the last 24 hours and the one that has begun. */
const SHOWN_HOURS = 25;
/** Maximum number of different names between two writes: the network could invent any number. */
const MOST_NAMES = 500;

const keys = {
  count: (hour: number, kind: string, name: string) => key<bigint>("network_met", hour, kind, name),
  all: () => prefix<bigint>("network_met"),
};

/** One kind and name, and how often it was met in the last day. */
interface Encounter {
  kind: string;
  name: string;
  count: number;
}

export type Encounters = ReturnType<typeof makeEncounters>;

export function makeEncounters(kv: Kv, clock: Clock) {
  let counted = new Map<string, { kind: EncounterKind; name: string; count: bigint }>();

  return {
    /** Counts in memory. */
    note(kind: EncounterKind, name: string): void {
      const known = counted.get(`${kind} ${name}`);
      if (known) known.count++;
      else if (counted.size < MOST_NAMES) counted.set(`${kind} ${name}`, { kind, name, count: 1n });
    },
    /** Writes what was counted since the last call. Throws StoreError; these counts are then lost. */
    async write(): Promise<void> {
      if (counted.size === 0) return;
      const hour = Math.floor(clock.now() / HOUR_MS);
      const change = new Change();
      for (const { kind, name, count } of counted.values()) change.add(keys.count(hour, kind, name), count);
      counted = new Map();
      await kv.commit(change, { background: true });
    },
  };
}

/** Resolves to what was met in the last day, by kind, the most frequent first. Throws StoreError. */
export async function encountersOfDay(kv: Kv, now: number): Promise<Encounter[]> {
  const found = new Map<string, Encounter>();
  const start = [...keys.all(), firstHour(now)];
  for await (const { key, value } of kv.list<bigint>({ prefix: keys.all(), start })) {
    const [, , kind, name] = key as [string, number, string, string];
    const known = found.get(`${kind} ${name}`);
    if (known) known.count += Number(value);
    else found.set(`${kind} ${name}`, { kind, name, count: Number(value) });
  }
  return [...found.values()].sort((a, b) => a.kind.localeCompare(b.kind) || b.count - a.count);
}

/** Deletes what is not shown any more. Returns how many rows. */
export function sweepEncounters(kv: Kv, now: number): Promise<number> {
  return deleteRange(kv, { prefix: keys.all(), end: [...keys.all(), firstHour(now)] });
}

function firstHour(now: number): number {
  return Math.floor(now / HOUR_MS) - SHOWN_HOURS + 1;
}
