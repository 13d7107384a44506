/**
 * The port to the bell (promise 7: truth is rows, a bell only wakes whoever reads them).
 *
 * Contract, kept by every engine and proved by `tests/contract/bell_test.ts`:
 * - A ring reaches those in the same process at once, and never before its time. On a bell that many processes share it
 *   reaches those in the others soon after. One that was set for a time (`ringAt`) is the setting process's own.
 * - A ring may be lost (after a crash), doubled, or for something that has changed since. Whoever sets rings therefore
 *   sets them again at boot and in a slow sweep for whatever has work waiting.
 * - When rings of other processes may have been lost, those who hear are woken with their prefix as the topic: anything
 *   below it may have rung.
 */
export interface Bell {
  /** Wakes all who hear the topic, now. */
  ring(topic: string): void;
  /**
   * Rings at `atMs` (Unix ms), or at once when that has passed. A topic has one time: a later one than is set does
   * nothing new, an earlier one takes its place.
   */
  ringAt(topic: string, atMs: number): void;
  /** Calls `wake`, which must return at once, for each topic that begins with `prefix`; answers how to stop that. */
  hear(prefix: string, wake: (topic: string) => void): () => void;
  /** Nothing that was set rings any more. Idempotent. */
  close(): Promise<void>;
}
