/**
 * The attempts to link a line, across its connections: for how long fresh QRs or codes are made without anybody using
 * them, and why the last attempt failed, which a person reads beside the next QR.
 */

/**
 * Rounds that may expire in a row before the line waits until somebody asks again; a round of QRs lasts about 160 s.
 */
const ROUNDS = 5;

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
