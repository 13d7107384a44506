/**
 * Commits that take a place in a sequence: the sequence's row is checked and raised in the commit itself, so two
 * processes can never hand out places out of order. Sequences are independent: what one account writes holds up no other.
 */
import { LRUCache } from "lru-cache";
import PQueue from "p-queue";
import type { Runtime } from "../../runtime.ts";
import { nameOfKey } from "../key_name.ts";
import { Change, type KeyOf, type Kv, type Slot, StoreError } from "../kv.ts";
import { instanceNumber } from "./instance.ts";

/** How often a commit may find its sequences raised by another process before it is given up. */
const TRIES = 100;
/** Digits, so that orders sort as numbers do: microseconds since 1970, then the instance that handed the place out. */
const PLACE_DIGITS = 16;
const INSTANCE_DIGITS = 4;
/** Sequences whose rows are remembered; the others are read again. */
const MOST_REMEMBERED = 10_000;

/** Adds `Change.ordered` to an engine that knows checks and mutations alone. */
export function withOrder(kv: Kv, options: { runtime: Pick<Runtime, "clock"> }): Kv {
  const { clock } = options.runtime;
  const instance = instanceNumber(kv);
  /** Rows of sequences as this instance last wrote them, by name. */
  const remembered = new LRUCache<string, Slot<number>>({ max: MOST_REMEMBERED });
  /** One at a time: at once, all but one would take their places in vain. */
  const queue = new PQueue({ concurrency: 1 });
  /** The highest place that this instance has handed out, in any sequence: no two events share an id. */
  let highest = 0;

  /** A row that another process has raised since is found out by its check. */
  async function read(sequences: ReadonlyMap<string, KeyOf<number>>): Promise<Slot<number>[]> {
    const rows = [...sequences.keys()].map((name) => remembered.get(name)).filter((row) => row !== undefined);
    return rows.length === sequences.size ? rows : await kv.getMany([...sequences.values()]);
  }

  async function commitOrdered(change: Change): Promise<string | null> {
    const sequences = new Map(change.orderedBuilds.map(({ sequence }) => [nameOfKey(sequence), sequence]));
    const suffix = String(await instance() % 10 ** INSTANCE_DIGITS).padStart(INSTANCE_DIGITS, "0");
    let rows = await read(sequences);
    for (let attempt = 0; attempt < TRIES; attempt++) {
      // With the clock: after an old backup is restored, places lie above all that were handed out since.
      highest = Math.max(highest, clock.now() * 1000, ...rows.map(({ value }) => value ?? 0));
      const placed = new Change();
      placed.checks.push(...change.checks);
      placed.mutations.push(...change.mutations);
      for (const { build } of change.orderedBuilds) {
        placed.mutations.push(...build(String(++highest).padStart(PLACE_DIGITS, "0") + suffix));
      }
      const place = highest;
      for (const row of rows) placed.check(row).set<number>(row.key, place);
      const version = await kv.commit(placed);
      if (version !== null) {
        for (const { key } of rows) remembered.set(nameOfKey(key), { key, value: place, version });
        return version;
      }
      const seen = rows;
      rows = await kv.getMany([...sequences.values()]);
      if (rows.every((row, i) => row.version === seen[i]!.version)) return null;
    }
    throw new StoreError("unavailable", `gave up after ${TRIES} conflicting commits`);
  }

  return {
    get: (key) => kv.get(key),
    getMany: (keys) => kv.getMany(keys),
    list: (range, listing) => kv.list(range, listing),
    commit: (change) => change.orderedBuilds.length === 0 ? kv.commit(change) : queue.add(() => commitOrdered(change)),
    close: () => kv.close(),
  };
}
