/** Time, chance, ids and log for tests: time moves only when told, chance is seeded, the log is kept in memory. */
import pino from "pino";
import {
  type Clock,
  ConfirmedTime,
  makeIds,
  type Random,
  type Runtime,
  steadyTime,
  systemRuntime,
} from "../../src/runtime.ts";
import { sealKey } from "../../src/store/seal.ts";

/** The system's clock, which can be set, and the gateway's clock above it. Timers go by the time that passes. */
export class ManualClock implements Clock {
  #elapsed = 0;
  #setBy: number;
  #steady: () => number;
  #timers = new Map<number, { at: number; run: () => void }>();
  #next = 1;

  constructor(now = Date.UTC(2026, 0, 15, 12)) {
    this.#setBy = now;
    this.#steady = steadyTime(this.wall, this.elapsed);
  }

  now(): number {
    return this.#steady();
  }

  after(delayMs: number, run: () => void): () => void {
    const id = this.#next++;
    this.#timers.set(id, { at: this.#elapsed + Math.max(0, delayMs), run });
    return () => this.#timers.delete(id);
  }

  /** The system's time. */
  wall = (): number => this.#setBy + this.#elapsed;

  /** The time that has passed. */
  elapsed = (): number => this.#elapsed;

  /** Sets the system's clock, forward or back, while no time passes. */
  jump(ms: number): void {
    this.#setBy += ms;
  }

  /** The process dies, and its timers with it; the next one takes the system's time. */
  restart(): void {
    this.#timers.clear();
    this.#steady = steadyTime(this.wall, this.elapsed);
  }

  /** Lets time pass, running each due timer at its own moment and letting promises settle between them. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    for (;;) {
      await settle();
      const due = [...this.#timers].filter(([, timer]) => timer.at <= end).sort((a, b) =>
        a[1].at - b[1].at || a[0] - b[0]
      );
      const first = due[0];
      if (!first) break;
      this.#timers.delete(first[0]);
      this.#elapsed = Math.max(this.#elapsed, first[1].at);
      first[1].run();
    }
    this.#elapsed = end;
    await settle();
  }

  /** Moves time until the work has ended, which waits for it. */
  async during<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    void work.catch(() => {}).then(() => isOver = true);
    while (!isOver) await this.advance(1);
    return await work;
  }

  /** When the next timer rings, Unix ms, or null. */
  nextTimer(): number | null {
    const times = [...this.#timers.values()].map((timer) => timer.at);
    return times.length ? this.#setBy + Math.min(...times) : null;
  }
}

/** Lets pending promises and immediate callbacks run. */
export async function settle(rounds = 3): Promise<void> {
  for (let i = 0; i < rounds; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Mulberry32: small, seeded, good enough to replay a test. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    bytes: (length) => Uint8Array.from({ length }, () => Math.floor(next() * 256)),
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
  };
}

export interface TestRuntime extends Runtime {
  clock: ManualClock;
  /** Every line that was logged, parsed. */
  lines: Record<string, unknown>[];
}

export function testRuntime(seed = 1, clock = new ManualClock()): TestRuntime {
  const random = seededRandom(seed);
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "trace", base: null }, { write: (text: string) => void lines.push(JSON.parse(text)) });
  const confirmed = new ConfirmedTime(clock.wall, clock.elapsed);
  return { clock, confirmed, random, ids: makeIds(clock, random), log, lines };
}

/** The time by a clock that is always right, however it moves. */
export function confirmedBy(clock: Clock): ConfirmedTime {
  return new ConfirmedTime(() => clock.now(), () => clock.now());
}

/** The real one, without a log. */
export function silentRuntime(): Runtime {
  return systemRuntime(pino({ level: "silent" }));
}

/** A passphrase's key, as different as the real one and made at once. */
export const quickKey = (passphrase: string, salt: Uint8Array): Uint8Array => sealKey(`${passphrase} ${[...salt]}`);
