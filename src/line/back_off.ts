/**
 * When a line that lost its connection tries again.
 *
 * At once the first time: most losses are one connection's own. Then with doubled pauses, short enough that a line hears
 * again within seconds after an outage of minutes, and with jitter, so that five hundred lines do not come back in one
 * moment; when the outage lasts, once a minute. A network that flaps is not punished: a login that held for a second
 * shows that it is there.
 */
import type { Random } from "../runtime.ts";

/** Lines that were lost together come back spread over this time. */
const SPREAD_MS = 250;
const FIRST_MS = 1_000;
const LONGEST_MS = 8_000;
/** After so many failures in a row (some five minutes) the outage is no short one. */
const LONG_OUTAGE_FAILURES = 45;
const LONG_OUTAGE_MS = 60_000;
/** A connection that lasted so long was one; one that lasted this long ends the series. */
const HELD_MS = 1_000;
const STABLE_MS = 10_000;
/** What is left of a series after a connection that held for a moment. */
const FAILURES_OF_A_FLAP = 2;
/** 515 means "connect again at once" and is no failure; more than this many without a login, and it is one. */
const RESTARTS_AT_ONCE = 3;

export class BackOff {
  readonly #random: Random;
  #failures = 0;
  #restarts = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A new series: the owner asked, or the line was linked. */
  reset(): void {
    this.#failures = this.#restarts = 0;
  }

  /** A connection ended that was logged in for so long; 0 for one that never was. */
  ended(lastedMs: number): void {
    if (lastedMs >= HELD_MS) this.#restarts = 0;
    if (lastedMs >= STABLE_MS) this.#failures = 0;
    else if (lastedMs >= HELD_MS) this.#failures = Math.min(this.#failures, FAILURES_OF_A_FLAP);
  }

  /** Whether to connect again at once after a 515. */
  restartsAtOnce(): boolean {
    return ++this.#restarts <= RESTARTS_AT_ONCE;
  }

  /** Counts a failure; milliseconds until the next try. */
  next(): number {
    const failures = this.#failures++;
    if (failures === 0) return this.#random.between(0, SPREAD_MS);
    const whole = failures < LONG_OUTAGE_FAILURES
      ? Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1))
      : LONG_OUTAGE_MS;
    return this.#random.between(whole / 2, whole);
  }
}
