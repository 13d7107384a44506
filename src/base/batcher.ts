/** Batches items that arrive while a flush is in flight. */
import type { Clock } from "../runtime.ts";

/** The result of one item of a flush; items fail independently. */
export type Settled<Out> = PromiseSettledResult<Out>;

/** How long an item may take in all, until its flush and in it. */
export interface ItemLimit {
  clock: Clock;
  /** In whole seconds. */
  ms: number;
  /** Returns the error of items that take longer. */
  late(): Error;
}

interface BatcherOptions<In> {
  /**
   * Returns how many waiting items, oldest first, the next flush takes; all of them by default. Zero means that a flush
   * in flight must end first; if none is in flight, it is treated as one. If it throws, all of them fail.
   */
  take?: (waiting: readonly In[]) => number;
  /** How many flushes may be in flight at once; 1 by default. */
  flights?: number;
  /** Items that take longer fail, up to a second early; those that still wait are then not flushed. */
  limit?: ItemLimit | undefined;
}

/** Time is counted, not read, so that a clock that jumps, or a suspended process, fails nothing. */
const TICK_MS = 1_000;

interface AddOptions {
  /** Until this settles, the item starts no flush but joins one started by others. */
  lingerUntil?: Promise<unknown>;
}

interface Waiting<In, Out> {
  item: In;
  settle: PromiseWithResolvers<Out>;
  /** The tick in which it was added. */
  tick: number;
}

/** Collects items while flushes are in flight and passes them to the next flush in order of arrival. */
export class Batcher<In, Out> {
  readonly #flush: (items: readonly In[]) => Promise<readonly Settled<Out>[]>;
  readonly #take: (waiting: readonly In[]) => number;
  readonly #flights: number;
  readonly #limit: ItemLimit | undefined;
  #waiting: Waiting<In, Out>[] = [];
  /** Items that start no flush; the next flush takes them last. */
  #lingering: Waiting<In, Out>[] = [];
  #flying = 0;
  #isDeparting = false;
  /** Items without a result, if there is a time limit. */
  readonly #open = new Set<Waiting<In, Out>>();
  #tick = 0;
  #cancelTick: (() => void) | null = null;

  /** `flush` returns one result per item, in order; if it throws, all items of that flush fail. */
  constructor(flush: (items: readonly In[]) => Promise<readonly Settled<Out>[]>, options: BatcherOptions<In> = {}) {
    this.#flush = flush;
    this.#take = options.take ?? ((waiting) => waiting.length);
    this.#flights = options.flights ?? 1;
    this.#limit = options.limit;
  }

  /** Adds an item; settles with its result from the flush. */
  add(item: In, { lingerUntil }: AddOptions = {}): Promise<Out> {
    const settle = Promise.withResolvers<Out>();
    const entry = { item, settle, tick: this.#tick };
    if (this.#limit) this.#watch(this.#limit, entry);
    if (lingerUntil) {
      this.#lingering.push(entry);
      const release = () => this.#release(entry);
      void lingerUntil.then(release, release);
    } else {
      this.#waiting.push(entry);
      void this.#depart();
    }
    return settle.promise;
  }

  #watch(limit: ItemLimit, entry: Waiting<In, Out>): void {
    this.#open.add(entry);
    const tick = () => {
      this.#cancelTick = limit.clock.after(TICK_MS, tick);
      this.#tick++;
      const late = new Set([...this.#open].filter(({ tick }) => this.#tick - tick >= limit.ms / TICK_MS));
      if (late.size === 0) return;
      this.#waiting = this.#waiting.filter((entry) => !late.has(entry));
      this.#lingering = this.#lingering.filter((entry) => !late.has(entry));
      for (const entry of late) this.#fail(entry, limit.late());
    };
    this.#cancelTick ??= limit.clock.after(TICK_MS, tick);
  }

  #ended(entry: Waiting<In, Out>): void {
    this.#open.delete(entry);
    if (this.#open.size > 0) return;
    this.#cancelTick?.();
    this.#cancelTick = null;
  }

  #release(entry: Waiting<In, Out>): void {
    const place = this.#lingering.indexOf(entry);
    if (place < 0) return;
    this.#waiting.push(...this.#lingering.splice(place, 1));
    void this.#depart();
  }

  async #depart(): Promise<void> {
    if (this.#isDeparting) return;
    this.#isDeparting = true;
    try {
      while (this.#waiting.length > 0 && this.#flying < this.#flights) {
        // Items added in the same turn of the event loop join the flush.
        await Promise.resolve();
        if (this.#waiting.length === 0) break;
        const taken = this.#take([...this.#waiting, ...this.#lingering].map((entry) => entry.item));
        if (taken < 1 && this.#flying > 0) break;
        const batch = this.#waiting.splice(0, Math.max(1, taken));
        batch.push(...this.#lingering.splice(0, taken - batch.length));
        void this.#fly(batch);
      }
    } catch (error) {
      const failed = [...this.#waiting.splice(0), ...this.#lingering.splice(0)];
      for (const entry of failed) this.#fail(entry, error);
    }
    this.#isDeparting = false;
  }

  #fail(entry: Waiting<In, Out>, error: unknown): void {
    this.#ended(entry);
    entry.settle.reject(error);
  }

  async #fly(batch: readonly Waiting<In, Out>[]): Promise<void> {
    this.#flying++;
    try {
      const results = await this.#flush(batch.map((entry) => entry.item));
      batch.forEach((entry, i) => {
        const result = results[i];
        if (result?.status !== "fulfilled") {
          return this.#fail(entry, result ? result.reason : new Error("the flush gave no result for this item"));
        }
        this.#ended(entry);
        entry.settle.resolve(result.value);
      });
    } catch (error) {
      for (const entry of batch) this.#fail(entry, error);
    }
    this.#flying--;
    void this.#depart();
  }
}
