/**
 * The only source of time, chance, ids and logging. Everything else takes a `Runtime`, so that tests replay.
 */
import { randomInt } from "node:crypto";
import { monotonicFactory } from "ulid";
import type { Logger } from "pino";

/** Time. All times in Paloma are Unix milliseconds unless a name says otherwise. */
export interface Clock {
  /** Never goes back while the process lives. */
  now(): number;
  /** Calls `run` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, run: () => void): () => void;
}

/** Randomness: cryptographic in production, seeded in tests. */
export interface Random {
  bytes(length: number): Uint8Array<ArrayBuffer>;
  /** Returns an integer, uniformly distributed from `min` to `max`, both inclusive. */
  between(min: number, max: number): number;
}

/** The kind of thing an id identifies. The prefix is part of the id, so that a wrong id is recognised at a glance. */
export type IdPrefix =
  | "acc"
  | "ses"
  | "msg"
  | "job"
  | "blk"
  | "whk"
  | "med"
  | "req"
  | "key"
  | "usr"
  | "aud"
  | "era"
  | "tpl"
  | "ver";

/** Ids. `next` sorts by creation time within one process. */
interface Ids {
  next(prefix: IdPrefix): string;
  /** Returns a message id as WhatsApp Web makes them: "3EB0" and 18 upper-case hex digits. */
  network(): string;
}

export type Log = Logger;

export interface Runtime {
  readonly clock: Clock;
  /** What expires or is deleted goes by this time. */
  readonly confirmed: ConfirmedTime;
  readonly random: Random;
  readonly ids: Ids;
  readonly log: Log;
}

/**
 * Speed of the clock while it is ahead of the system's: slow enough to be caught up, with pauses right to within 1 %.
 */
const CATCHING_UP = 0.99;

/**
 * Returns a clock that never goes back while the process lives. It follows the system's clock forward; when that is set
 * back, it continues slightly slower until the system's clock has caught up. `wall` is Unix ms, `elapsed` is ms since
 * any fixed moment.
 */
export function steadyTime(wall: () => number, elapsed: () => number): () => number {
  let seen = wall();
  let time = seen;
  let at = elapsed();
  return () => {
    const system = wall();
    // Fast path: most calls come within the same millisecond.
    if (system === seen) return Math.floor(time);
    seen = system;
    const now = elapsed();
    time = Math.max(system, time + (now - at) * CATCHING_UP);
    at = now;
    return Math.floor(time);
  };
}

/** About 25 days: the runtime fires longer timers at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: steadyTime(() => Date.now(), () => performance.now()),
  after(delayMs, run) {
    if (delayMs > LONGEST_TIMER_MS) {
      let cancel = systemClock.after(LONGEST_TIMER_MS, () => {
        cancel = systemClock.after(delayMs - LONGEST_TIMER_MS, run);
      });
      return () => cancel();
    }
    const timer = setTimeout(run, Math.max(0, delayMs));
    return () => clearTimeout(timer);
  },
};

/** Returns by how much this process's clock is ahead of the system's, ms: more than 0 after that was set back. */
export function aheadMs(): number {
  return Math.max(0, systemClock.now() - Date.now());
}

/** The most that the runtime draws in one call. */
const MOST_RANDOM_BYTES = 65_536;

export const systemRandom: Random = {
  bytes(length) {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at += MOST_RANDOM_BYTES) {
      crypto.getRandomValues(bytes.subarray(at, at + MOST_RANDOM_BYTES));
    }
    return bytes;
  },
  between: (min, max) => randomInt(min, max + 1),
};

/** Network ids drawn at a time: a draw costs the same for one as for all of them. */
const DRAWN_NETWORK_IDS = 64;
const NETWORK_ID_BYTES = 9;

/** Returns ids made from the given clock and random source. */
export function makeIds(clock: Clock, random: Random): Ids {
  let digits = "";
  const ulid = monotonicFactory(() => random.between(0, 2 ** 32 - 1) / 2 ** 32);
  return {
    next: (prefix) => `${prefix}_${ulid(clock.now()).toLowerCase()}`,
    network() {
      if (digits === "") digits = random.bytes(DRAWN_NETWORK_IDS * NETWORK_ID_BYTES).toHex().toUpperCase();
      const own = digits.slice(-2 * NETWORK_ID_BYTES);
      digits = digits.slice(0, -2 * NETWORK_ID_BYTES);
      return `3EB0${own}`;
    },
  };
}

/** Returns a runtime with the real clock, real randomness and the given log. */
export function systemRuntime(log: Log): Runtime {
  const confirmed = new ConfirmedTime(() => Date.now(), () => performance.now());
  return { clock: systemClock, confirmed, random: systemRandom, ids: makeIds(systemClock, systemRandom), log };
}

/** Resolves after `delayMs`, or at once when the signal aborts. Never rejects. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.after(delayMs, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** How far the system's clock may run ahead without a confirmation: longer than what a killed run has not kept. */
const BELIEVED_MS = 30 * MINUTE_MS;
/** How long a time ahead has to stand until it is believed, if nobody says otherwise. */
const STANDS_MS = 6 * HOUR_MS;
/** How far a clock may be from the network's and still be called right. */
const AGREES_MS = 10 * MINUTE_MS;

/** A time, and the moment at which it was true, by a clock that nobody sets. */
interface Moment {
  time: number;
  at: number;
}

/**
 * The time up to which things expire and are deleted for good. It follows the system's clock only as far as that can be
 * believed: a clock that jumps ahead by hours, by mistake or in a failed synchronization, must not fail what waits or
 * remove what is kept.
 */
export class ConfirmedTime {
  readonly #wall: () => number;
  readonly #elapsed: () => number;
  #confirmed: Moment;
  /** Since when the system's clock is ahead, and by how much; null while it is believed. */
  #jump: { at: number; aheadMs: number } | null = null;
  /** The network's time, as told last. */
  #told: Moment | null = null;
  /** Whether that contradicted the system's. */
  #isDenied = false;

  /** Believes the system's clock as it is now. `wall` is Unix ms, `elapsed` is ms since any fixed moment. */
  constructor(wall: () => number, elapsed: () => number) {
    this.#wall = wall;
    this.#elapsed = elapsed;
    this.#confirmed = { time: wall(), at: elapsed() };
  }

  /** Unix ms; never ahead of the system's clock. */
  now(): number {
    const [time, at] = [this.#wall(), this.#elapsed()];
    const known = this.#confirmed.time + at - this.#confirmed.at;
    const aheadMs = time - known;
    // A clock that was wrong when the network told its time is right once it says the same.
    if (this.#isDenied && this.#isAsTold(time, at)) this.#isDenied = false;
    else if (aheadMs > BELIEVED_MS) {
      if (this.#jump === null || Math.abs(aheadMs - this.#jump.aheadMs) > BELIEVED_MS) this.#jump = { at, aheadMs };
      if (this.#isDenied || at - this.#jump.at < STANDS_MS) return Math.floor(known);
    }
    this.#jump = null;
    this.#confirmed = { time, at };
    return time;
  }

  /** Returns by how much the system's clock is ahead of what is confirmed, ms; 0 while it is believed. */
  aheadMs(): number {
    const confirmed = this.now();
    return this.#jump === null ? 0 : this.#wall() - confirmed;
  }

  /** Tells the network's time, Unix ms. */
  confirm(time: number): void {
    const at = this.#elapsed();
    this.#told = { time, at };
    this.#isDenied = !this.#isAsTold(this.#wall(), at);
    this.#confirmed = { time: this.#isDenied ? time : this.#wall(), at };
  }

  #isAsTold(time: number, at: number): boolean {
    return this.#told !== null && Math.abs(time - (this.#told.time + at - this.#told.at)) <= AGREES_MS;
  }

  /** Continues from the time that an earlier run confirmed last, Unix ms. */
  resume(time: number): void {
    this.#confirmed = { time: Math.min(time, this.#wall()), at: this.#elapsed() };
  }
}
