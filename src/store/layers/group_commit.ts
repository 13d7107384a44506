/**
 * Group commit: changes that arrive while a flush is in flight are written together by the next one. One fsync then
 * serves many concurrent writers, which more than doubles the rate of accepted sends. An engine on a server may have
 * several flushes in flight, as long as their keys do not conflict.
 */
import { Batcher, type ItemLimit, type Settled } from "../../base/batcher.ts";
import { Change, type Key, type Kv, type Mutation, nameOfKey, StoreError } from "../kv.ts";
import { type CommitLoad, isWithin, loadOf } from "../limits.ts";

/**
 * An ordered build's mutations are known only when it runs. Too low an estimate costs no more than a retry in halves.
 */
const ORDERED_GUESS = { mutations: 12, keyBytes: 1024, bytes: 8 * 1024 };

/**
 * Commits changes that do not conflict. Resolves to the result of each, as `Kv.commit` gives it, or null if unknown.
 */
type CommitTogether = (changes: readonly Change[]) => Promise<readonly (string | null)[] | null>;

interface GroupCommitOptions {
  /** The engine's own limits: a merged commit may exceed those of a single caller. */
  limits: Readonly<CommitLoad>;
  /** For engines that can report per change whether its checks held; otherwise changes are merged into one. */
  together?: CommitTogether;
  /** How many flushes may be in flight at once; 1 by default. */
  flights?: number;
  /** A commit that fails by it was not written if it still waited; otherwise that is unknown. */
  limit?: ItemLimit | undefined;
}

/**
 * Writes concurrent commits together. If the result of each is unknown, they are repeated in halves, so that one failed
 * check never fails the others. Changes whose keys conflict are never in the same flush nor in flight at the same time,
 * so that the later one sees the earlier.
 */
export function withGroupCommit(
  kv: Kv,
  { limits, together = mergedOn(kv), flights = 1, limit }: GroupCommitOptions,
): Kv {
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
  const batcher = new Batcher<Waiter, string | null>(flush, { take, flights, limit });
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
    // If the store cannot write, splitting will not help; any other error is the fault of a single change.
    if (error instanceof StoreError) return changes.map(() => ({ status: "rejected", reason: error }));
  }
  // In halves: among a hundred changes, one failed check costs a dozen commits rather than a hundred.
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

/** Merges changes into one; amounts added to the same counter are summed, in the place of the first. */
function merge(changes: readonly Change[]): Change {
  const merged = new Change();
  const sums = new Map<string, Extract<Mutation, { kind: "add" }>>();
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
      if (sum) {
        sum.amount += mutation.amount;
        continue;
      }
      const first = { ...mutation };
      sums.set(name, first);
      merged.mutations.push(first);
    }
  }
  return merged;
}

interface Load extends CommitLoad {
  /** Hashes of the sequences in which the changes take a place; each is checked and written once. */
  sequences: Set<number>;
}

/**
 * Returns how many waiting changes, oldest first, fit into one commit and conflict neither with each other nor with
 * those in flight.
 */
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
    // In one flush, changes take consecutive places in a sequence; of two flushes in flight, one would fail its check.
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

/** How changes use a key: two that only check it, or only add to it, do not conflict. */
type Use = "check" | "write" | "add";

/** The keys that a change touches and how, as parallel arrays. */
interface Touched {
  /** Hashes of the keys; the same key may occur twice. */
  keys: number[];
  uses: Use[];
  /** Hashes of the sequences in which the change takes a place. */
  sequences: Set<number>;
}

/** A change that waits or is in flight. Its keys and load are computed only if it has to be compared with others. */
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

/** Records a change's uses by key hash; two different uses of one key count as a write. */
function join(done: Map<number, Use>, { keys, uses }: Touched): void {
  for (let i = 0; i < keys.length; i++) {
    const [key, use] = [keys[i]!, uses[i]!];
    const before = done.get(key);
    if (before !== use) done.set(key, before === undefined ? use : "write");
  }
}

/** Whether the change conflicts with the recorded uses: it writes a key that is used, or uses a key that is written. */
function meet(done: ReadonlyMap<number, Use>, { keys, uses }: Touched): boolean {
  for (let i = 0; i < keys.length; i++) {
    const [use, other] = [uses[i]!, done.get(keys[i]!)];
    if (other !== undefined && (other !== use || use === "write")) return true;
  }
  return false;
}

const FNV_PRIME = 0x01000193;

/** Hashes a key to a small integer. A collision costs nothing but a needless wait. */
function hashOf(key: Key): number {
  let hash = 0;
  for (const part of key) {
    if (typeof part === "string") {
      for (let i = 0; i < part.length; i++) hash = Math.imul(hash ^ part.charCodeAt(i), FNV_PRIME);
    } else {
      hash = Math.imul(Math.imul(hash ^ part, FNV_PRIME) ^ (part / 2 ** 32), FNV_PRIME);
    }
    hash = Math.imul(hash ^ 0x100, FNV_PRIME);
  }
  return hash >>> 2;
}
