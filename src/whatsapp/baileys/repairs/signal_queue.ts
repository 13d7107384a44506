/**
 * Repairs the Signal library's queue of work with one peer. There is one for all lines of the process, and it runs what
 * waits in the asynchronous context of whoever came first: of another line, or of a transaction that is long over. What
 * the work then changed was read from that transaction and written to it, so a session fell back and its keys were used
 * again: receivers drop such a message as a repetition, although the server acknowledged it. Here each work runs in the
 * context that asked for it (docs/decisions/0009-signal-sessions.md).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { SessionBuilder, SessionCipher } from "libsignal";

/** The parts of the library's classes that queue work. */
export interface QueuedCipher {
  queueJob(job: () => Promise<unknown>): Promise<unknown>;
}
export interface QueuedBuilder {
  initOutgoing(keys: unknown): Promise<void>;
}

const repaired = new WeakSet<object>();

/** Makes the work of these prototypes run in its own context. */
export function repairSignalQueue(
  cipher = SessionCipher.prototype as unknown as QueuedCipher,
  builder = SessionBuilder.prototype as unknown as QueuedBuilder,
): void {
  if (repaired.has(cipher)) return;
  repaired.add(cipher);
  const { queueJob } = cipher;
  cipher.queueJob = async function (job) {
    const inContext = AsyncLocalStorage.snapshot();
    return await queueJob.call(this, () => inContext(job));
  };
  const { initOutgoing } = builder;
  builder.initOutgoing = async function (this: QueuedBuilder & { storage: object }, keys) {
    // The work itself is out of reach, but all that it reads and writes is here.
    const storage = inContextOfNow(this.storage);
    await initOutgoing.call(Object.create(this, { storage: { value: storage } }), keys);
  };
}

/** The same methods, run in the present context whoever calls them. */
function inContextOfNow<T extends object>(target: T): T {
  const inContext = AsyncLocalStorage.snapshot();
  return new Proxy(target, {
    get(target, name) {
      const member = Reflect.get(target, name);
      return typeof member === "function"
        ? (...args: unknown[]) => inContext(() => Reflect.apply(member, target, args))
        : member;
    },
  });
}
