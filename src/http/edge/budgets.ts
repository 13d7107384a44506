/**
 * Limits on concurrent work and memory of requests, in total and per account. Page reads, bulks and jobs wait for their
 * account's turn; bodies and event streams beyond their limit are refused with `Retry-After`.
 */
import { FairSemaphore } from "../../base/fair_semaphore.ts";
import { Problem } from "../../errors.ts";
import { MIB } from "../body/body.ts";
import type { Clock } from "../../runtime.ts";
import type { Metrics } from "../../ops/metrics.ts";

/** The smallest share of an account: it must hold the largest body, that of a bulk. */
const MIN_BODY_BYTES = 32 * MIB;
/** Smaller bodies are not counted: even one for every possible connection is bearable. */
const SMALL_BODY_BYTES = 64 * 1024;
const RETRY_AFTER_SECONDS = 1;
/** A page of long texts takes tens of megabytes while it is assembled. */
const READS = { inAll: 8, each: 1 };
const BULKS = { inAll: 2, each: 1 };
const JOBS = { inAll: 8, each: 1 };

interface BudgetOptions {
  /** Limit across all accounts. A single account may use a quarter of it, and always enough for the largest body. */
  bodyBytes: number;
  metrics: Metrics;
  clock: Clock;
}

export type Budgets = ReturnType<typeof makeBudgets>;

export function makeBudgets({ bodyBytes, metrics, clock }: BudgetOptions) {
  const inAll = Math.max(MIN_BODY_BYTES, bodyBytes);
  const budgets = {
    /** Pages and counts of long lists: the feed, the history, queues, bulks, opt-outs, erasures. */
    reads: new FairSemaphore({ ...READS, restBy: clock }),
    /** Bulks, from parsing to the commit. Like jobs they rest after each of their batches, so they need no `restBy`. */
    bulks: new FairSemaphore(BULKS),
    /** Requests that work on thousands of rows: cancelling a bulk, redelivering since a time. */
    jobs: new FairSemaphore(JOBS),
    /** Bytes of request bodies in memory. */
    bodies: new Tally("bytes of request bodies", {
      inAll,
      each: Math.max(MIN_BODY_BYTES, Math.floor(inAll / 4)),
      free: SMALL_BODY_BYTES,
    }),
    /** Event streams. */
    streams: new Tally("event streams", { inAll: Infinity, each: Infinity, free: 0 }),
  };
  metrics.gauge("paloma_http_body_bytes", "Bytes of request bodies in memory", () => budgets.bodies.sum);
  metrics.gauge("paloma_event_streams", "Open event streams", () => budgets.streams.sum);
  metrics.gauge("paloma_http_reads_waiting", "Reads of pages that wait for their turn", () => budgets.reads.waiting);
  metrics.gauge("paloma_bulks_waiting", "Bulks that wait for their turn", () => budgets.bulks.waiting);
  const jobsWait = "Cancelled bulks and redeliveries since a time that wait for their turn";
  metrics.gauge("paloma_jobs_waiting", jobsWait, () => budgets.jobs.waiting);
  return {
    ...budgets,
    /** Runs the read of a page when it is the account's turn. */
    read: <T>(accountId: string, work: () => Promise<T>) => budgets.reads.run({ tenant: accountId }, work),
    /** Runs a job when it is the account's turn. */
    job: <T>(accountId: string, work: () => Promise<T>) => budgets.jobs.run({ tenant: accountId }, work),
  };
}

/** An amount in use, which disposal gives back. */
export interface Taken extends Disposable {
  /** Throws Problem too_much_at_once if the account would exceed its share, busy if all accounts together would. */
  add(amount: number): void;
}

interface TallyLimits {
  inAll: number;
  each: number;
  /** The amount of each `Taken` that is not counted. */
  free: number;
}

/** Counts what is in use, in total and per account. */
export class Tally {
  readonly #what: string;
  readonly #limits: TallyLimits;
  readonly #accounts = new Map<string, number>();
  #sum = 0;

  constructor(what: string, limits: TallyLimits) {
    this.#what = what;
    this.#limits = limits;
  }

  get sum(): number {
    return this.#sum;
  }

  /** Returns a `Taken` that holds nothing yet. `most` is the account's own limit. */
  open(accountId: string, most = this.#limits.each): Taken {
    let held = 0;
    const move = (to: number) => {
      const more = this.#counted(to) - this.#counted(held);
      if (more > 0) this.#assertRoom(accountId, more, most);
      if (more !== 0) this.#change(accountId, more);
      held = to;
    };
    return { add: (amount) => move(held + amount), [Symbol.dispose]: () => move(0) };
  }

  #counted(amount: number): number {
    return Math.max(0, amount - this.#limits.free);
  }

  #assertRoom(accountId: string, amount: number, most: number): void {
    const { inAll } = this.#limits;
    const again = { retryAfterSeconds: RETRY_AFTER_SECONDS };
    if ((this.#accounts.get(accountId) ?? 0) + amount > most) {
      throw new Problem("too_much_at_once", `The account may have ${most} ${this.#what} at a time.`, again);
    }
    if (this.#sum + amount > inAll) {
      throw new Problem("busy", `The gateway accepts ${inAll} ${this.#what} at a time.`, again);
    }
  }

  #change(accountId: string, amount: number): void {
    this.#sum += amount;
    const left = (this.#accounts.get(accountId) ?? 0) + amount;
    if (left > 0) this.#accounts.set(accountId, left);
    else this.#accounts.delete(accountId);
  }
}
