/**
 * Group commit: what arrives while one flush is in flight goes into the next one together. An fsync then pays for many
 * concurrent writers, which more than doubles what an accepting endpoint can take.
 */
import { nameOfKey } from "../key_name.ts";
import { Change, type Key, type Kv, StoreError } from "../kv.ts";
import { type CommitLoad, isWithin, loadOf } from "../limits.ts";

/** What became of one item of a flush; one item's failure leaves its neighbours alone. */
export type Settled<Out> = PromiseSettledResult<Out>;

interface BatcherOptions<In> {
  /** How many of the waiting items, oldest first, the next flush takes; all of them when left out. At least 1. */
  take?: (waiting: readonly In[]) => number;
  /** Awaited before each flush takes its items: what gathers meanwhile joins it. At once when left out. */
  turn?: () => Promise<void>;
}

interface Waiting<In, Out> {
  item: In;
  settle: PromiseWithResolvers<Out>;
}

/** Collects items while a flush is in flight and hands them to the next flush in the order of their arrival. */
export class Batcher<In, Out> {
  readonly #flush: (items: readonly In[]) => Promise<readonly Settled<Out>[]>;
  readonly #take: (waiting: readonly In[]) => number;
  readonly #turn: () => Promise<void>;
  #waiting: Waiting<In, Out>[] = [];
  #running = false;

  /** `flush` answers one result an item, in their order; when it throws, every item of that flush fails. */
  constructor(flush: (items: readonly In[]) => Promise<readonly Settled<Out>[]>, options: BatcherOptions<In> = {}) {
    this.#flush = flush;
    this.#take = options.take ?? ((waiting) => waiting.length);
    // What is added in the same turn of the event loop joins the flush in any case.
    this.#turn = options.turn ?? (() => Promise.resolve());
  }

  /** Resolves or rejects with what the flush says of this item. */
  add(item: In): Promise<Out> {
    const settle = Promise.withResolvers<Out>();
    this.#waiting.push({ item, settle });
    if (!this.#running) void this.#run();
    return settle.promise;
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      await this.#turn();
      const batch = this.#waiting.splice(0, Math.max(1, this.#take(this.#waiting.map((entry) => entry.item))));
      try {
        const results = await this.#flush(batch.map((entry) => entry.item));
        batch.forEach(({ settle }, i) => {
          const result = results[i];
          if (result?.status === "fulfilled") settle.resolve(result.value);
          else settle.reject(result ? result.reason : new Error("the flush gave no result for this item"));
        });
      } catch (error) {
        for (const { settle } of batch) settle.reject(error);
      }
    }
    this.#running = false;
  }
}

/** Mutations of an ordered build are known only when it runs. Too small a guess costs a retry one by one, no more. */
const ORDERED_GUESS = { mutations: 12, keyBytes: 1024, bytes: 8 * 1024 };

/** Commits changes that leave each other's keys alone: what `Kv.commit` says of each, or null where it cannot tell. */
type CommitTogether = (changes: readonly Change[]) => Promise<readonly (string | null)[] | null>;

interface GroupCommitOptions {
  /** The engine's own: a merged commit may hold more than one of a caller. */
  limits: Readonly<CommitLoad>;
  /** For engines that know of each change in one transaction whether its checks held; else all are merged into one. */
  together?: CommitTogether;
}

/**
 * Writes concurrent commits together. What could not be told of each is repeated in halves, so that one loser
 * never takes others down; changes that touch each other's keys never go together, so that each still sees the one
 * before.
 */
export function withGroupCommit(kv: Kv, { limits, together = mergedOn(kv) }: GroupCommitOptions): Kv {
  const take = (waiting: readonly Change[]) => mergeable(waiting, limits);
  const flush = (changes: readonly Change[]) => commitEach(kv, changes, together);
  const batcher = new Batcher<Change, string | null>(flush, { take });
  return {
    get: (key) => kv.get(key),
    getMany: (keys) => kv.getMany(keys),
    list: (range, options) => kv.list(range, options),
    commit: (change) => batcher.add(change),
    close: () => kv.close(),
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
  /** Names of the sequences in which the changes take a place: each is checked and written once. */
  sequences: Set<string>;
}

/** How many of the waiting changes, oldest first, fit into one commit and leave each other's keys alone. */
function mergeable(waiting: readonly Change[], limits: Readonly<CommitLoad>): number {
  if (waiting.length === 1) return 1;
  const load: Load = { checks: 0, sequences: new Set(), mutations: 0, keyBytes: 0, bytes: 0 };
  const touched: Touched = { checked: new Set(), written: new Set(), added: new Set() };
  let count = 0;
  for (const change of waiting) {
    grow(load, change);
    if (!isWithin(load, limits) || !touch(touched, change)) break;
    count++;
  }
  return count;
}

/** Adds the change to the load. */
function grow(load: Load, change: Change): void {
  const own = loadOf(change);
  const ordered = change.orderedBuilds.length;
  load.checks += own.checks;
  load.mutations += own.mutations + ordered * ORDERED_GUESS.mutations;
  load.keyBytes += own.keyBytes + ordered * ORDERED_GUESS.keyBytes;
  load.bytes += own.bytes + ordered * ORDERED_GUESS.bytes;
  for (const { sequence } of change.orderedBuilds) {
    const name = nameOfKey(sequence);
    if (load.sequences.has(name)) continue;
    load.sequences.add(name);
    load.checks++;
    load.mutations++;
  }
}

/** Keys, by name, that the changes of a batch check, write, and add to. */
interface Touched {
  checked: Set<string>;
  written: Set<string>;
  added: Set<string>;
}

/** Notes the keys of the change; false when it would meet another change of the batch at one of them. */
function touch(touched: Touched, change: Change): boolean {
  const checked = change.checks.map((check) => nameOfKey(check.key));
  const written: string[] = [];
  const added: string[] = [];
  for (const mutation of change.mutations) (mutation.kind === "add" ? added : written).push(nameOfKey(mutation.key));
  const fits = !checked.some((name) => touched.written.has(name) || touched.added.has(name)) &&
    !written.some((name) => touched.checked.has(name) || touched.written.has(name) || touched.added.has(name)) &&
    !added.some((name) => touched.checked.has(name) || touched.written.has(name));
  for (const name of checked) touched.checked.add(name);
  for (const name of written) touched.written.add(name);
  for (const name of added) touched.added.add(name);
  return fits;
}
