/**
 * The port to the bell (promise 7: rows are the truth; a bell only wakes their readers).
 *
 * Contract, kept by every engine and proved by `tests/contract/bell_test.ts`:
 * - A ring reaches listeners in the same process at once, and never early. On a bell shared by many processes it
 *   reaches listeners in the others shortly afterwards. A timed ring (`ringAt`) stays in the process that set it.
 * - A ring may be lost (after a crash), duplicated, or stale. Callers therefore set their rings again at boot and in a
 *   slow sweep over everything that has work waiting.
 * - When rings from other processes may have been lost, listeners are called with their prefix as the topic: anything
 *   below it may have rung.
 */
export interface Bell {
  /** Wakes every listener of the topic now. */
  ring(topic: string): void;
  /**
   * Rings at `atMs` (Unix ms), or at once if that has passed. A topic has one pending time: a later one is ignored, an
   * earlier one replaces it.
   */
  ringAt(topic: string, atMs: number): void;
  /**
   * Calls `wake`, which must return at once, for each topic that begins with `prefix`. Returns the unsubscribe
   * function.
   */
  hear(prefix: string, wake: (topic: string) => void): () => void;
  /** Cancels all pending rings. Idempotent. */
  close(): Promise<void>;
}
