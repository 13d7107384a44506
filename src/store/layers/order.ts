/**
 * Commits that take a place in a sequence: the sequence's row is checked and raised in the commit itself, so two
 * processes can never give out places out of order. Sequences are independent: accounts do not wait for each other.
 */
import { LRUCache } from "lru-cache";
import PQueue from "p-queue";
import { atMost } from "../../base/at_most.ts";
import { onDemand } from "../../base/single_flight.ts";
import type { Clock, Runtime } from "../../runtime.ts";
import { Change, type KeyOf, type Kv, nameOfKey, retryOnConflict, type Slot, untilCurrent } from "../kv.ts";
import { storeKeys } from "./rows.ts";

/**
 * An order is a string of fixed width, so that it sorts numerically: microseconds since 1970, then the instance number.
 */
const PLACE_DIGITS = 16;
const INSTANCE_DIGITS = 4;
/** Sequences whose rows are cached; the others are read again. */
const MOST_REMEMBERED = 10_000;

/** Commits changes that do not conflict; resolves to a result for each, as `Kv.commit` gives it. */
type CommitAll = (changes: readonly Change[]) => Promise<(string | null)[]>;

/** Adds `Change.ordered` to an engine that supports only checks and mutations. */
export function withOrder(kv: Kv, options: { runtime: Pick<Runtime, "clock"> }): Kv {
  const commitOne = inOrder(kv, async (changes) => await Promise.all(changes.map((one) => kv.commit(one))), options);
  /** One at a time: of several at once, all but one would fail their checks. */
  const queue = new PQueue({ concurrency: 1 });
  return {
    ...kv,
    commit: (change) =>
      change.orderedBuilds.length === 0
        ? kv.commit(change)
        : queue.add(async () => (await commitOne([change]))[0] ?? null),
  };
}

/**
 * As `withOrder`, for an engine that commits many changes at once. At most one call at a time per sequence: others
 * would fail.
 */
export function inOrder(kv: Kv, commitAll: CommitAll, options: { runtime: Pick<Runtime, "clock"> }): CommitAll {
  const { clock } = options.runtime;
  const instance = instanceNumber(kv, clock);
  /** Sequence rows as this instance last read or wrote them, by name. */
  const known = new LRUCache<string, Slot<number>>(atMost(MOST_REMEMBERED));
  /** The highest place that this instance has given out in any sequence, so that no two events share an id. */
  let highest = 0;

  /** Cached rows may be stale: if another process has raised one, its check fails. */
  async function read(sequences: ReadonlyMap<string, KeyOf<number>>): Promise<Slot<number>[]> {
    const rows = [...sequences.keys()].map((name) => known.get(name)).filter((row) => row !== undefined);
    return rows.length === sequences.size ? rows : await kv.getMany([...sequences.values()]);
  }

  /**
   * Returns the change with its ordered mutations built for their places, and its sequences' rows checked and raised.
   * `last` holds the last place given out in each sequence.
   */
  function place(
    change: Change,
    rows: ReadonlyMap<string, Slot<number>>,
    { last, suffix }: { last: Map<string, number>; suffix: string },
  ): Placed {
    const placed = new Change().include({ ...change, orderedBuilds: [] });
    for (const { sequence, build } of change.orderedBuilds) {
      const name = nameOfKey(sequence);
      const before = digitsOf(last.get(name) ?? rows.get(name)!.value ?? 0);
      last.set(name, ++highest);
      placed.mutations.push(...build(digitsOf(highest) + suffix, (earlier) => earlier.startsWith(before)));
    }
    const names = [...sequencesOf([change]).keys()];
    for (const name of names) {
      const row = rows.get(name)!;
      placed.check(row).set<number>(row.key, highest);
    }
    return { change: placed, names, place: highest };
  }

  return async (changes) => {
    const sequences = sequencesOf(changes);
    if (sequences.size === 0) return await commitAll(changes);
    const suffix = String(await instance() % 10 ** INSTANCE_DIGITS).padStart(INSTANCE_DIGITS, "0");
    const answers = new Array<string | null>(changes.length).fill(null);
    let open = [...changes.keys()];
    let rows = await read(sequences);
    return await untilCurrent(async () => {
      const seen = new Map(rows.map((row) => [nameOfKey(row.key), row]));
      // At least the clock: after an old backup is restored, new places must exceed those given out since it was made.
      highest = Math.max(highest, clock.now() * 1000, ...rows.map(({ value }) => value ?? 0));
      const last = new Map<string, number>();
      const placed = open.map((i) => place(changes[i]!, seen, { last, suffix }));
      const versions = await commitAll(placed.map(({ change }) => change));
      for (const [n, { names, place }] of placed.entries()) {
        const version = versions[n]!;
        answers[open[n]!] = version;
        if (version === null) continue;
        for (const name of names) seen.set(name, { key: sequences.get(name)!, value: place, version });
      }
      for (const [name, row] of seen) known.set(name, row);
      open = open.filter((i) => answers[i] === null && changes[i]!.orderedBuilds.length > 0);
      if (open.length === 0) return answers;
      rows = await kv.getMany([...sequences.values()]);
      const overtaken = new Set(
        rows.map(({ key }) => nameOfKey(key)).filter((name, i) => rows[i]!.version !== seen.get(name)!.version),
      );
      // A change whose sequences were not overtaken failed a check of its own.
      open = open.filter((i) => [...sequencesOf([changes[i]!]).keys()].some((name) => overtaken.has(name)));
      return open.length === 0 ? answers : undefined;
    });
  };
}

interface Placed {
  change: Change;
  /** Names of the sequences in which it takes a place. */
  names: string[];
  /** The last place it takes. */
  place: number;
}

function digitsOf(place: number): string {
  return String(place).padStart(PLACE_DIGITS, "0");
}

function sequencesOf(changes: readonly Change[]): Map<string, KeyOf<number>> {
  const builds = changes.flatMap(({ orderedBuilds }) => orderedBuilds);
  return new Map(builds.map(({ sequence }) => [nameOfKey(sequence), sequence]));
}

/**
 * Returns this instance's number, unique among all instances ever, drawn from the store when first needed. It is at
 * least the clock in Unix seconds: a store that lost its last commits may have lost the highest number.
 */
export function instanceNumber(kv: Kv, clock: Clock): () => Promise<number> {
  return onDemand(() =>
    retryOnConflict(kv, async () => {
      const slot = await kv.get(storeKeys.instances());
      const number = Math.max((slot.value ?? 0) + 1, Math.floor(clock.now() / 1000));
      return { change: new Change().check(slot).set(storeKeys.instances(), number), result: number };
    })
  ).need;
}
