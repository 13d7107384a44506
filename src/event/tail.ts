/**
 * The end of an account's log, read once for all who wait there: each is woken by the events that it asks for, and by no
 * others, however many wait.
 */
import { Loop } from "../base/single_flight.ts";
import type { Clock } from "../runtime.ts";
import { type EventLog, type EventQuery, EVENTS_A_READ, fits, orderOf } from "./log.ts";

/** A lost wake-up costs no more than this. */
const LOOK_EVERY_MS = 15_000;

type Filter = Pick<EventQuery, "types" | "sessionId">;

interface Waiter {
  filter: Filter;
  wake: Wake;
}

/**
 * There is something to read. `since`: the id after which it lies, as far as that is known: what was logged between the
 * subscription and it fits nothing that the waiter asks for.
 */
type Wake = (since: string | null) => void;

export class Tails {
  readonly #events: Pick<EventLog, "following" | "newest" | "subscribe">;
  readonly #clock: Clock;
  readonly #tails = new Map<string, Tail>();

  constructor(events: Pick<EventLog, "following" | "newest" | "subscribe">, clock: Clock) {
    this.#events = events;
    this.#clock = clock;
  }

  /** Calls `wake` whenever something that fits may have been logged; returns the function that unsubscribes. */
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
  readonly #events: Pick<EventLog, "following" | "newest" | "subscribe">;
  readonly #accountId: string;
  readonly #waiters = new Set<Waiter>();
  readonly #looks: Loop;
  /** Id of the last event that was read; undefined until the end of the log was found. */
  #last: string | null | undefined;
  #unsubscribe = () => {};

  constructor(
    events: Pick<EventLog, "following" | "newest" | "subscribe">,
    { accountId, clock }: { accountId: string; clock: Clock },
  ) {
    this.#events = events;
    this.#accountId = accountId;
    this.#looks = new Loop(clock, () => this.#read());
  }

  /** The returned function resolves to how many are left. */
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
        // What came while the end was looked for.
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
      // Whoever reads the log for a waiter meets the same failure, and reports it.
      for (const { wake } of this.#waiters) wake(null);
    }
    return LOOK_EVERY_MS;
  }
}
