/** Tasks that run one at a time per key. */
import PQueue from "p-queue";

/**
 * Runs tasks with the same key one at a time: a chat's messages, an account's creations. Without keys use `p-queue`.
 */
export class KeyedQueue {
  /** Holds only keys with tasks. */
  readonly #queues = new Map<string, PQueue>();

  /** Runs `work` after everything added earlier under the same key; settles as `work` does. Keys are independent. */
  add<T>(key: string, work: () => Promise<T>): Promise<T> {
    let queue = this.#queues.get(key);
    if (!queue) {
      queue = new PQueue({ concurrency: 1 });
      queue.once("idle", () => this.#queues.delete(key));
      this.#queues.set(key, queue);
    }
    return queue.add(work);
  }

  /** Resolves when nothing is running or waiting under any key. */
  async onIdle(): Promise<void> {
    while (this.#queues.size > 0) await Promise.all([...this.#queues.values()].map((queue) => queue.onIdle()));
  }
}
