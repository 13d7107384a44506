/**
 * The rest of whoever works until nothing is to be done: it goes on when somebody wakes it. A wake-up during the work is
 * not lost: the next rest ends at once.
 */
export class Waker {
  /** Whether somebody has woken it since the last look began. */
  #woken = false;
  #wakeUp: (() => void) | null = null;
  #idling: (() => void)[] = [];
  #isIdle = false;
  #restsUntil = 0;

  get woken(): boolean {
    return this.#woken;
  }

  /** When it looks by itself, Unix ms: infinity when nothing is to be done, a time that has passed while it works. */
  get restsUntil(): number {
    return this.#restsUntil;
  }

  wake(): void {
    this.#woken = true;
    this.#wakeUp?.();
  }

  /** A look begins, which sees whatever it was woken for. */
  looks(): void {
    this.#woken = false;
  }

  /** Resolves at the next wake-up, or at once when there was one since the last look. */
  async next(): Promise<void> {
    if (this.#woken) return;
    await new Promise<void>((resolve) => this.#wakeUp = resolve);
    this.#wakeUp = null;
  }

  /** As `next`, with nothing to do meanwhile. Somebody wakes it at `untilMs`, Unix ms. */
  async rest(untilMs: number): Promise<void> {
    this.#restsUntil = untilMs;
    this.#isIdle = true;
    this.end();
    await this.next();
    this.#isIdle = false;
    this.#restsUntil = 0;
  }

  /** Resolves when it rests. */
  idle(): Promise<void> {
    return this.#isIdle && !this.#woken ? Promise.resolve() : new Promise((resolve) => this.#idling.push(resolve));
  }

  /** Whoever waits for it to rest goes on. */
  end(): void {
    for (const resolve of this.#idling.splice(0)) resolve();
  }
}
