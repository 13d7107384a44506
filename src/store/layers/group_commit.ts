/**
 * Group commit: what arrives while a flush is in flight goes into the next one together. An fsync then pays for many
 * concurrent writers, which more than doubles what an accepting endpoint can take. An engine on a server has several
 * flushes in flight: one that waits for the disk holds up none that leaves its keys alone.
 */
import { Batcher, type Settled } from "../../base/batcher.ts";
import { Change, type Key, type Kv, nameOfKey, StoreError } from "../kv.ts";
import { type CommitLoad, isWithin, loadOf } from "../limits.ts";

/** Mutations of an ordered build are known only when it runs. Too small a guess costs a retry one by one, no more. */
const ORDERED_GUESS = { mutations: 12, keyBytes: 1024, bytes: 8 * 1024 };

/** Commits changes that leave each other's keys alone: what `Kv.commit` says of each, or null where it cannot tell. */
type CommitTogether = (changes: readonly Change[]) => Promise<readonly (string | null)[] | null>;

interface GroupCommitOptions {
  /** The engine's own: a merged commit may hold more than one of a caller. */
  limits: Readonly<CommitLoad>;
  /** For engines that know of each change in one transaction whether its checks held; else all are merged into one. */
  together?: CommitTogether;
  /** How many flushes may be in flight at once; one when left out. */
  flights?: number;
}

/**
 * Writes concurrent commits together. What could not be found out of each is repeated in halves, so that one loser
 * never takes others down; changes that touch each other's keys never go together, nor in two flights at once, so that
 * each still sees the one before.
 */
export function withGroupCommit(kv: Kv, { limits, together = mergedOn(kv), flights = 1 }: GroupCommitOptions): Kv {
  const flying = new Set<readonly Waiter[]>();
  const take = (waiting: readonly Waiter[]) => mergeable(waiting, { limits, flying: [...flying].flat() });
  const flush = async (waiters: readonly Waiter[]) => {
    flying.add(waiters);
    try {
      return await commitEach(kv, waiters.map(({ change }) => change), together);
    } finally {
      flying.delete(waiters);
    }
  };
  const batcher = new Batcher<Waiter, string | null>(flush, { take, flights });
  return {
    ...kv,
    commit: (change, options) => batcher.add(new Waiter(change), options),
  };
}

async function commitEach(
  kv: Kv,
  changes: readonly Change[],
  together: CommitTogether,
): Promise<Settled<string | null>[]> {
  const [only] = changes;
  if (only && changes.length === 1) return await Promise.allSettled([kv.commit(only)]);
  try {
    const versions = await together(changes);
    if (versions !== null) return versions.map((value) => ({ status: "fulfilled", value }));
  } catch (error) {
    // A store that cannot write will not write them one by one either; anything else is one change's own mistake.
    if (error instanceof StoreError) return changes.map(() => ({ status: "rejected", reason: error }));
  }
  // By halves: beside a hundred changes one loser costs a dozen commits, and not a hundred.
  const middle = Math.ceil(changes.length / 2);
  const first = await commitEach(kv, changes.slice(0, middle), together);
  return [...first, ...await commitEach(kv, changes.slice(middle), together)];
}

function mergedOn(kv: Kv): CommitTogether {
  return async (changes) => {
    const version = await kv.commit(merge(changes));
    return version === null ? null : changes.map(() => version);
  };
}

/** One change that does what all do; amounts for one counter are added up. */
function merge(changes: readonly Change[]): Change {
  const merged = new Change();
  const sums = new Map<string, { key: Key; amount: bigint }>();
  for (const change of changes) {
    merged.checks.push(...change.checks);
    merged.orderedBuilds.push(...change.orderedBuilds);
    for (const mutation of change.mutations) {
      if (mutation.kind !== "add") {
        merged.mutations.push(mutation);
        continue;
      }
      const name = nameOfKey(mutation.key);
      const sum = sums.get(name);
      if (sum) sum.amount += mutation.amount;
      else sums.set(name, { key: mutation.key, amount: mutation.amount });
    }
  }
  for (const { key, amount } of sums.values()) merged.add(key, amount);
  return merged;
}

interface Load extends CommitLoad {
  /** Hashes of the sequences in which the changes take a place: each is checked and written once. */
  sequences: Set<number>;
}

/** How many of the waiting changes, oldest first, fit into one commit and meet neither each other nor those in flight. */
function mergeable(
  waiting: readonly Waiter[],
  { limits, flying }: { limits: Readonly<CommitLoad>; flying: readonly Waiter[] },
): number {
  if (waiting.length === 1 && flying.length === 0) return 1;
  const load: Load = { checks: 0, sequences: new Set(), mutations: 0, keyBytes: 0, bytes: 0 };
  const uses = new Map<number, Use>();
  const inFlight = new Set<number>();
  for (const { touched } of flying) {
    join(uses, touched);
    for (const sequence of touched.sequences) inFlight.add(sequence);
  }
  let count = 0;
  for (const waiter of waiting) {
    grow(load, waiter);
    const { touched } = waiter;
    if (count > 0 && !isWithin(load, limits)) break;
    // Together they take their places one behind the other; in two flights one of them would in vain.
    if (meet(uses, touched) || !inFlight.isDisjointFrom(touched.sequences)) break;
    join(uses, touched);
    count++;
  }
  return count;
}

/** Adds the waiter's change to the load. */
function grow(load: Load, { change, load: own, touched }: Waiter): void {
  const ordered = change.orderedBuilds.length;
  load.checks += own.checks;
  load.mutations += own.mutations + ordered * ORDERED_GUESS.mutations;
  load.keyBytes += own.keyBytes + ordered * ORDERED_GUESS.keyBytes;
  load.bytes += own.bytes + ordered * ORDERED_GUESS.bytes;
  for (const sequence of touched.sequences) {
    if (load.sequences.has(sequence)) continue;
    load.sequences.add(sequence);
    load.checks++;
    load.mutations++;
  }
}

/** What changes do to a key: those that only check it, or only add to it, leave each other alone. */
type Use = "check" | "write" | "add";

/** What a change does to keys, in its order: the first use is of the first key. */
interface Touched {
  /** Hashes of the keys; a key may be there twice. */
  keys: number[];
  uses: Use[];
  /** Hashes of the sequences in which the change takes a place. */
  sequences: Set<number>;
}

/** A change that waits or is in flight. What it touches and takes is found out when it meets others only. */
class Waiter {
  #touched: Touched | null = null;
  #load: CommitLoad | null = null;

  constructor(readonly change: Change) {}

  get touched(): Touched {
    return this.#touched ??= touchedBy(this.change);
  }

  get load(): CommitLoad {
    return this.#load ??= loadOf(this.change);
  }
}

function touchedBy({ checks, mutations, orderedBuilds }: Change): Touched {
  const keys: number[] = [];
  const uses: Use[] = [];
  for (const { key } of checks) {
    keys.push(hashOf(key));
    uses.push("check");
  }
  for (const { kind, key } of mutations) {
    keys.push(hashOf(key));
    uses.push(kind === "add" ? "add" : "write");
  }
  return { keys, uses, sequences: new Set(orderedBuilds.map(({ sequence }) => hashOf(sequence))) };
}

/** Adds what a change does to what is done, by the hashes of keys: two uses of one key are as good as writing it. */
function join(done: Map<number, Use>, { keys, uses }: Touched): void {
  for (let i = 0; i < keys.length; i++) {
    const [key, use] = [keys[i]!, uses[i]!];
    const before = done.get(key);
    if (before !== use) done.set(key, before === undefined ? use : "write");
  }
}

/** Whether the change writes where something is done, or does something where it is written. */
function meet(done: ReadonlyMap<number, Use>, { keys, uses }: Touched): boolean {
  for (let i = 0; i < keys.length; i++) {
    const [use, other] = [uses[i]!, done.get(keys[i]!)];
    if (other !== undefined && (other !== use || use === "write")) return true;
  }
  return false;
}

const FNV_PRIME = 0x01000193;

/** A small integer that is the same for the same key. Keys that share one by chance go one behind the other, no more. */
function hashOf(key: Key): number {
  let hash = 0;
  for (const part of key) {
    if (typeof part === "string") {
      for (let i = 0; i < part.length; i++) hash = Math.imul(hash ^ part.charCodeAt(i), FNV_PRIME);
    } else if (part instanceof Uint8Array) {
      for (const byte of part) hash = Math.imul(hash ^ byte, FNV_PRIME);
    } else {
      const number = Number(part);
      hash = Math.imul(Math.imul(hash ^ number, FNV_PRIME) ^ (number / 2 ** 32), FNV_PRIME);
    }
    hash = Math.imul(hash ^ 0x100, FNV_PRIME);
  }
  return hash >>> 2;
}
