/**
 * A line that is to be linked, from one connection to the next: how long a fresh QR or code is made for nobody, and why
 * the last attempt failed, which a person reads beside the next QR.
 */

/** How often one is made before the line waits for somebody to ask; a round of QRs lasts some 160 s. */
const ROUNDS = 5;

export class LinkAttempts {
  #rounds = 0;
  /** Whether the present connection has shown a QR or a code: without one, its end is no attempt's. */
  #isOffered = false;
  #failure: string | null = null;

  /** The owner asked, or the line was linked. */
  reset(): void {
    this.#rounds = 0;
    this.#isOffered = false;
    this.#failure = null;
  }

  /** What the line's row still says beside a QR or a code, after a restart. */
  resume(reason: string | null): void {
    this.#failure = reason;
  }

  /** A QR or a code is shown; returns why the last attempt failed, null when none did. */
  offered(): string | null {
    this.#isOffered = true;
    return this.#failure;
  }

  /** The connection ended. */
  ended(reason: string): void {
    if (this.#isOffered) this.#failure = reason;
    this.#isOffered = false;
  }

  /** Nobody scanned or typed; returns whether a fresh one is made at once. */
  expired(): boolean {
    return ++this.#rounds < ROUNDS;
  }
}
