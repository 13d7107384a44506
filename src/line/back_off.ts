/**
 * When a line that reconnects, or waits to be linked, tries again.
 *
 * The first retry is immediate, because most losses concern a single connection. Then the back-off doubles, but stays
 * short enough for a line to be back within seconds after an outage of minutes. Jitter keeps five hundred lines from
 * reconnecting at the same moment. In a long outage a line retries about once a minute. A flapping network does not
 * raise the back-off: a login that held for a second shows that the network is there.
 */
import type { Random } from "../runtime.ts";

/** The first retries of lines that were lost together are spread over this time. */
const SPREAD_MS = 250;
const FIRST_MS = 1_000;
const LONGEST_MS = 8_000;
/** After this many consecutive failures (about five minutes) the outage counts as long. */
const LONG_OUTAGE_FAILURES = 45;
const LONG_OUTAGE_MS = 60_000;
/** A login that held this long shows that the network is there; a stable one ends the series of failures. */
const HELD_MS = 1_000;
const STABLE_MS = 10_000;
/** The count to which a login that held, but was not stable, reduces the failures. */
const FAILURES_OF_A_FLAP = 2;
/** 515 means "reconnect at once" and is not a failure, except after this many in a row without a login. */
const RESTARTS_AT_ONCE = 3;

export class BackOff {
  readonly #random: Random;
  #failures = 0;
  #restarts = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Starts a new series: the owner asked for a connection, or the line was linked. */
  reset(): void {
    this.#failures = this.#restarts = 0;
  }

  /** Notes the end of a connection that was logged in for `lastedMs`; 0 if it never logged in. */
  ended(lastedMs: number): void {
    if (lastedMs >= HELD_MS) this.#restarts = 0;
    if (lastedMs >= STABLE_MS) this.#failures = 0;
    else if (lastedMs >= HELD_MS) this.#failures = Math.min(this.#failures, FAILURES_OF_A_FLAP);
  }

  /** Counts a 515; returns whether to reconnect at once. */
  restartsAtOnce(): boolean {
    return ++this.#restarts <= RESTARTS_AT_ONCE;
  }

  /** Counts a failure; returns the milliseconds until the next retry. */
  next(): number {
    const failures = this.#failures++;
    if (failures === 0) return this.#random.between(0, SPREAD_MS);
    const whole = failures < LONG_OUTAGE_FAILURES
      ? Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1))
      : LONG_OUTAGE_MS;
    return this.#random.between(whole / 2, whole);
  }
}

/**
 * Rounds that may expire in a row before the line waits until somebody asks again; a round of QRs lasts about 160 s.
 */
const ROUNDS = 5;

/**
 * The attempts to link a line, across its connections: for how long fresh QRs or codes are made without anybody using
 * them, and why the last attempt failed, which a person reads beside the next QR.
 */
export class LinkAttempts {
  #rounds = 0;
  /** Whether the current connection has shown a QR or a code: only then is its end the end of an attempt. */
  #isOffered = false;
  #failure: string | null = null;

  /** Starts afresh: the owner asked for a connection, or the line was linked. */
  reset(): void {
    this.#rounds = 0;
    this.#isOffered = false;
    this.#failure = null;
  }

  /** Restores the last failure after a restart, from the `reason` of a line that shows a QR or a code. */
  resume(reason: string | null): void {
    this.#failure = reason;
  }

  /** Notes that a QR or a code is shown; returns why the last attempt failed, null if none did. */
  offered(): string | null {
    this.#isOffered = true;
    return this.#failure;
  }

  /** Notes the end of a connection. */
  ended(reason: string): void {
    if (this.#isOffered) this.#failure = reason;
    this.#isOffered = false;
  }

  /** Counts a round that nobody used; returns whether the next one begins at once. */
  expired(): boolean {
    return ++this.#rounds < ROUNDS;
  }
}
