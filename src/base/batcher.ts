/** Batches items that arrive while a flush is in flight. */

/** The result of one item of a flush; items fail independently. */
export type Settled<Out> = PromiseSettledResult<Out>;

interface BatcherOptions<In> {
  /**
   * Returns how many waiting items, oldest first, the next flush takes; all of them by default. Zero means that a flush
   * in flight must end first; if none is in flight, it is treated as one. If it throws, all of them fail.
   */
  take?: (waiting: readonly In[]) => number;
  /** How many flushes may be in flight at once; 1 by default. */
  flights?: number;
  /** Awaited before each flush takes its items, which fail if it rejects. Items that arrive meanwhile join the flush. */
  turn?: () => Promise<void>;
}

interface AddOptions {
  /** Until this settles, the item starts no flush but joins one started by others. */
  lingerUntil?: Promise<unknown>;
}

interface Waiting<In, Out> {
  item: In;
  settle: PromiseWithResolvers<Out>;
}

/** Collects items while flushes are in flight and passes them to the next flush in order of arrival. */
export class Batcher<In, Out> {
  readonly #flush: (items: readonly In[]) => Promise<readonly Settled<Out>[]>;
  readonly #take: (waiting: readonly In[]) => number;
  readonly #turn: () => Promise<void>;
  readonly #flights: number;
  #waiting: Waiting<In, Out>[] = [];
  /** Items that start no flush; the next flush takes them last. */
  #lingering: Waiting<In, Out>[] = [];
  #flying = 0;
  #isTurning = false;

  /** `flush` returns one result per item, in order; if it throws, all items of that flush fail. */
  constructor(flush: (items: readonly In[]) => Promise<readonly Settled<Out>[]>, options: BatcherOptions<In> = {}) {
    this.#flush = flush;
    this.#take = options.take ?? ((waiting) => waiting.length);
    // Even so, items added in the same turn of the event loop join the flush.
    this.#turn = options.turn ?? (() => Promise.resolve());
    this.#flights = options.flights ?? 1;
  }

  /** Number of items waiting for a flush. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Adds an item; settles with its result from the flush. */
  add(item: In, { lingerUntil }: AddOptions = {}): Promise<Out> {
    const settle = Promise.withResolvers<Out>();
    const entry = { item, settle };
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

  #release(entry: Waiting<In, Out>): void {
    const place = this.#lingering.indexOf(entry);
    if (place < 0) return;
    this.#waiting.push(...this.#lingering.splice(place, 1));
    void this.#depart();
  }

  async #depart(): Promise<void> {
    if (this.#isTurning) return;
    this.#isTurning = true;
    try {
      while (this.#waiting.length > 0 && this.#flying < this.#flights) {
        await this.#turn();
        const taken = this.#take([...this.#waiting, ...this.#lingering].map((entry) => entry.item));
        if (taken < 1 && this.#flying > 0) break;
        const batch = this.#waiting.splice(0, Math.max(1, taken));
        batch.push(...this.#lingering.splice(0, taken - batch.length));
        void this.#fly(batch);
      }
    } catch (error) {
      const failed = [...this.#waiting.splice(0), ...this.#lingering.splice(0)];
      for (const { settle } of failed) settle.reject(error);
    }
    this.#isTurning = false;
  }

  async #fly(batch: readonly Waiting<In, Out>[]): Promise<void> {
    this.#flying++;
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
    this.#flying--;
    void this.#depart();
  }
}
