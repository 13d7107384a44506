/**
 * Lets a worker that has nothing to do sleep until it is woken. A wake-up during work is not lost: the
 * next sleep then ends at once.
 */
export class Waker {
  /** Whether a wake-up has come since the last call of `looks`. */
  #woken = false;
  #wakeUp: (() => void) | null = null;
  #idling: (() => void)[] = [];
  #isIdle = false;
  #restsUntil = 0;

  get woken(): boolean {
    return this.#woken;
  }

  /** Until when the worker sleeps, Unix ms: infinity if nothing is due, 0 while it works. */
  get restsUntil(): number {
    return this.#restsUntil;
  }

  wake(): void {
    this.#woken = true;
    this.#wakeUp?.();
  }

  /** Clears earlier wake-ups: the worker is about to check for the work that they announced. */
  looks(): void {
    this.#woken = false;
  }

  /** Resolves at the next wake-up, or at once if there was one since the last call of `looks`. */
  async next(): Promise<void> {
    if (this.#woken) return;
    await new Promise<void>((resolve) => this.#wakeUp = resolve);
    this.#wakeUp = null;
  }

  /** Like `next`, but counts as idle until then. The caller arranges a wake-up at `untilMs`, Unix ms. */
  async rest(untilMs: number): Promise<void> {
    this.#restsUntil = untilMs;
    this.#isIdle = true;
    this.end();
    await this.next();
    this.#isIdle = false;
    this.#restsUntil = 0;
  }

  /** Resolves when the worker is idle. */
  idle(): Promise<void> {
    return this.#isIdle && !this.#woken ? Promise.resolve() : new Promise((resolve) => this.#idling.push(resolve));
  }

  /** Resolves all pending calls of `idle`. */
  end(): void {
    for (const resolve of this.#idling.splice(0)) resolve();
  }
}
