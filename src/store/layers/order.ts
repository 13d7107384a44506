/**
 * Commits that take a place in a sequence: the sequence's row is checked and raised in the commit itself, so two
 * processes can never hand out places out of order. Sequences are independent: what one account writes holds up no other.
 */
import { LRUCache } from "lru-cache";
import PQueue from "p-queue";
import { atMost } from "../../base/at_most.ts";
import { onDemand } from "../../base/single_flight.ts";
import type { Clock, Runtime } from "../../runtime.ts";
import { Change, type KeyOf, type Kv, nameOfKey, retryOnConflict, type Slot, StoreError } from "../kv.ts";
import { storeKeys } from "./rows.ts";

/** How often a commit may find its sequences raised by another process before it is given up. */
const TRIES = 100;
/** Digits, so that orders sort as numbers do: microseconds since 1970, then the instance that handed the place out. */
const PLACE_DIGITS = 16;
const INSTANCE_DIGITS = 4;
/** Sequences whose rows are remembered; the others are read again. */
const MOST_REMEMBERED = 10_000;

/** Commits changes that leave each other's keys alone; an answer each, as `Kv.commit` gives it. */
type CommitAll = (changes: readonly Change[]) => Promise<(string | null)[]>;

/** Adds `Change.ordered` to an engine that knows checks and mutations alone. */
export function withOrder(kv: Kv, options: { runtime: Pick<Runtime, "clock"> }): Kv {
  const commitOne = inOrder(kv, async (changes) => await Promise.all(changes.map((one) => kv.commit(one))), options);
  /** One at a time: at once, all but one would take their places in vain. */
  const queue = new PQueue({ concurrency: 1 });
  return {
    ...kv,
    commit: (change) =>
      change.orderedBuilds.length === 0
        ? kv.commit(change)
        : queue.add(async () => (await commitOne([change]))[0] ?? null),
  };
}

/** The same for an engine that commits many changes in one go. One call at a time a sequence: others would take places in vain. */
export function inOrder(kv: Kv, commitAll: CommitAll, options: { runtime: Pick<Runtime, "clock"> }): CommitAll {
  const { clock } = options.runtime;
  const instance = instanceNumber(kv, clock);
  /** Rows of sequences as this instance last saw or wrote them, by name. */
  const known = new LRUCache<string, Slot<number>>(atMost(MOST_REMEMBERED));
  /** The highest place that this instance has handed out, in any sequence: no two events share an id. */
  let highest = 0;

  /** A row that another process has raised since is found out by its check. */
  async function read(sequences: ReadonlyMap<string, KeyOf<number>>): Promise<Slot<number>[]> {
    const rows = [...sequences.keys()].map((name) => known.get(name)).filter((row) => row !== undefined);
    return rows.length === sequences.size ? rows : await kv.getMany([...sequences.values()]);
  }

  /**
   * The change with what it orders at its place, and the rows of its sequences checked and raised. `last` holds the last
   * place given out in each sequence.
   */
  function place(
    change: Change,
    rows: ReadonlyMap<string, Slot<number>>,
    { last, suffix }: { last: Map<string, number>; suffix: string },
  ): Placed {
    const placed = new Change();
    placed.checks.push(...change.checks);
    placed.mutations.push(...change.mutations);
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
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const seen = new Map(rows.map((row) => [nameOfKey(row.key), row]));
      // With the clock: after an old backup is restored, places lie above all that were handed out since.
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
        rows.map((row) => nameOfKey(row.key)).filter((name, i) => {
          return rows[i]!.version !== seen.get(name)!.version;
        }),
      );
      // What was not overtaken has failed by a check of its own.
      open = open.filter((i) => [...sequencesOf([changes[i]!]).keys()].some((name) => overtaken.has(name)));
      if (open.length === 0) return answers;
    }
    throw new StoreError("unavailable", `gave up after ${TRIES} conflicting commits`);
  };
}

interface Placed {
  change: Change;
  /** Of the sequences that it takes a place in. */
  names: string[];
  /** Its last place. */
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
 * This instance's number, which no other and no earlier one has; drawn from the store when it is first asked for. With the
 * clock, Unix seconds: a store that has lost its last commits may have lost the highest number.
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
