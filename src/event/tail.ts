/**
 * Follows the end of an account's log on behalf of any number of waiters. It is read once for all of them, and each is
 * woken only by events that match its filter.
 */
import { Loop } from "../base/single_flight.ts";
import type { Clock } from "../runtime.ts";
import { type EventLog, type EventQuery, EVENTS_A_READ, fits, orderOf } from "./event_log.ts";

/** Polling interval, the most that a lost wake-up costs. */
const LOOK_EVERY_MS = 15_000;

type Log = Pick<EventLog, "following" | "newest" | "subscribe">;
type Filter = Pick<EventQuery, "types" | "sessionId">;

interface Waiter {
  filter: Filter;
  wake: Wake;
}

/**
 * Called when there is something to read. `since`: the id after which it is, if known; events logged between the
 * subscription and that id do not match the filter.
 */
type Wake = (since: string | null) => void;

export class Tails {
  readonly #events: Log;
  readonly #clock: Clock;
  readonly #tails = new Map<string, Tail>();

  constructor(events: Log, clock: Clock) {
    this.#events = events;
    this.#clock = clock;
  }

  /** Calls `wake` whenever a matching event may have been logged; returns the unsubscribe function. */
  subscribe(accountId: string, filter: Filter, wake: Wake): () => void {
    const tail = this.#tails.get(accountId) ?? new Tail(this.#events, { accountId, clock: this.#clock });
    this.#tails.set(accountId, tail);
    const leave = tail.add({ filter, wake });
    return () => {
      if (leave() === 0 && this.#tails.get(accountId) === tail) this.#tails.delete(accountId);
    };
  }
}

class Tail {
  readonly #events: Log;
  readonly #accountId: string;
  readonly #waiters = new Set<Waiter>();
  readonly #looks: Loop;
  /** Id of the last event read; undefined until the end of the log was found. */
  #last: string | null | undefined;
  #unsubscribe = () => {};

  constructor(events: Log, { accountId, clock }: { accountId: string; clock: Clock }) {
    this.#events = events;
    this.#accountId = accountId;
    this.#looks = new Loop(clock, () => this.#read());
  }

  /** Adds a waiter. The returned function removes it and returns how many are left. */
  add(waiter: Waiter): () => number {
    this.#waiters.add(waiter);
    if (this.#waiters.size === 1) {
      this.#unsubscribe = this.#events.subscribe(this.#accountId, () => void this.#looks.now());
      this.#looks.start(LOOK_EVERY_MS);
      void this.#looks.now();
    }
    return () => {
      this.#waiters.delete(waiter);
      if (this.#waiters.size === 0) {
        this.#unsubscribe();
        void this.#looks.stop();
      }
      return this.#waiters.size;
    };
  }

  async #read(): Promise<number> {
    try {
      if (this.#last === undefined) {
        this.#last = await this.#events.newest(this.#accountId);
        // Events may have been logged before the end was found.
        for (const { wake } of this.#waiters) wake(null);
      }
      for (let isEnd = false; !isEnd && this.#waiters.size > 0;) {
        const after: string | null = this.#last;
        const read = await this.#events.following(this.#accountId, after === null ? null : orderOf(after));
        for (const event of read) {
          for (const { filter, wake } of this.#waiters) if (fits(event, filter)) wake(this.#last);
          this.#last = event.id;
        }
        isEnd = read.length < EVENTS_A_READ;
      }
    } catch {
      // The waiters' own reads will fail in the same way and report it.
      for (const { wake } of this.#waiters) wake(null);
    }
    return LOOK_EVERY_MS;
  }
}
