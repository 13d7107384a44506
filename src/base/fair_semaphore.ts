/**
 * A semaphore shared fairly: parties are served in turn and none holds more than its share, so that a flood from one
 * party delays only that party.
 */
import type { Clock } from "../runtime.ts";

interface FairSemaphoreOptions {
  /** How many tasks may run at once, over all parties. */
  inAll: number;
  /** How many tasks of one party may run at once. */
  each: number;
  /**
   * If given, a place stays unused after a task for as long as the task took, which leaves processor time for others.
   */
  restBy?: Clock;
}

interface Party {
  running: number;
  /** Waiting tasks by lane; the next lane to be served comes first. */
  lanes: Map<string, (() => void)[]>;
}

/** Who a task belongs to. Within a party, lanes take turns too, such as the webhooks of an account. */
interface Turn {
  party: string;
  lane?: string;
  /** Aborts when the task is no longer needed. */
  signal?: AbortSignal;
}

export class FairSemaphore {
  readonly #options: FairSemaphoreOptions;
  /** Parties with running or waiting tasks; the next to be served comes first. */
  readonly #parties = new Map<string, Party>();
  #running = 0;
  #waiting = 0;

  constructor(options: FairSemaphoreOptions) {
    this.#options = options;
  }

  /** Number of waiting tasks. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Runs the task once it gets a place, and settles as it does. Rejects with the signal's reason if that aborts before
   * the task has begun.
   */
  async run<T>(turn: Turn, work: () => Promise<T>): Promise<T> {
    using _place = await this.enter(turn);
    return await work();
  }

  /** Resolves once it gets a place, which disposing releases. Rejects as `run` does. */
  async enter({ party, lane = "", signal }: Turn): Promise<Disposable> {
    await this.#place(party, { lane, signal });
    const { restBy } = this.#options;
    const begun = restBy?.now() ?? 0;
    return {
      [Symbol.dispose]: () => {
        const tookMs = restBy ? restBy.now() - begun : 0;
        if (tookMs > 0) restBy!.after(tookMs, () => this.#leave(party));
        else this.#leave(party);
      },
    };
  }

  #place(name: string, { lane, signal }: { lane: string; signal: AbortSignal | undefined }): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const party: Party = this.#parties.get(name) ?? { running: 0, lanes: new Map() };
    this.#parties.set(name, party);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      this.#drop(name, { lane, begin });
      reject(signal!.reason);
    };
    const begin = () => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    signal?.addEventListener("abort", leave, { once: true });
    const waiting = party.lanes.get(lane);
    if (waiting) waiting.push(begin);
    else party.lanes.set(lane, [begin]);
    this.#waiting++;
    this.#serve();
    return promise;
  }

  /** Removes a waiting task from its lane. */
  #drop(name: string, { lane, begin }: { lane: string; begin: () => void }): void {
    const party = this.#parties.get(name)!;
    const waiting = party.lanes.get(lane)!.filter((other) => other !== begin);
    if (waiting.length > 0) party.lanes.set(lane, waiting);
    else party.lanes.delete(lane);
    this.#waiting--;
    this.#forget(name, party);
  }

  #forget(name: string, { running, lanes }: Party): void {
    if (running === 0 && lanes.size === 0) this.#parties.delete(name);
  }

  #leave(name: string): void {
    const party = this.#parties.get(name)!;
    party.running--;
    this.#running--;
    this.#forget(name, party);
    this.#serve();
  }

  #serve(): void {
    while (this.#running < this.#options.inAll && this.#waiting > 0) {
      const next = this.#next();
      if (!next) return;
      const [name, party] = next;
      const [lane, waiting] = party.lanes.entries().next().value!;
      const begin = waiting.shift()!;
      party.running++;
      this.#running++;
      this.#waiting--;
      // The lane and the party that were served move to the end.
      party.lanes.delete(lane);
      if (waiting.length > 0) party.lanes.set(lane, waiting);
      this.#parties.delete(name);
      this.#parties.set(name, party);
      begin();
    }
  }

  /** Returns the next party that may run one more task. */
  #next(): [string, Party] | null {
    for (const entry of this.#parties) {
      const [, { running, lanes }] = entry;
      if (lanes.size > 0 && running < this.#options.each) return entry;
    }
    return null;
  }
}
