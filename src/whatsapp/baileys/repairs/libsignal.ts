/**
 * Repairs of libsignal 6.0.0. It makes its objects itself, and Baileys too, so each repair is made to a class or a module:
 * once a process, for all lines.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { Buffer } from "node:buffer";
import { hkdfSync } from "node:crypto";
import { SessionBuilder, SessionCipher } from "libsignal";
import crypto from "libsignal/src/crypto.js";
import "../../../base/libsignal.ts";

/** The part of its cryptography that is repaired. */
interface Derivation {
  /** `chunks` keys of 32 bytes; three when left out. */
  deriveSecrets(input: Uint8Array, salt: Uint8Array, info: Uint8Array, chunks?: number): Buffer[];
}

const CHUNK_BYTES = 32;
const repaired = new WeakSet<object>();

/**
 * Reading a message by trial: it is tried on each session with the sender, the newest first, and a try on the wrong one
 * spoils that one for good; what is then sent on it cannot be read by anybody. Each reconnect starts new sessions while
 * messages on older ones are still coming in, so it happens to every line. Here each try is on a copy.
 */
export function repairTrials(cipher: Pick<SessionCipher, "decryptWithSessions"> = SessionCipher.prototype): void {
  if (repaired.has(cipher.decryptWithSessions)) return;
  const { decryptWithSessions } = cipher;
  cipher.decryptWithSessions = async function (data, sessions) {
    let failure: unknown;
    for (const session of sessions) {
      const copy = session.constructor.deserialize(session.serialize());
      try {
        const { plaintext } = await decryptWithSessions.call(this, data, [copy]);
        // A member that the copy has lost, because the peer has answered, is to be lost here too.
        Object.assign(session, { pendingPreKey: undefined }, copy);
        return { session, plaintext };
      } catch (error) {
        failure = error;
      }
    }
    if (failure) throw failure;
    return await decryptWithSessions.call(this, data, sessions);
  };
  repaired.add(cipher.decryptWithSessions);
}

/**
 * The queue of work with one peer. There is one for all lines of the process, and it runs what waits in the asynchronous
 * context of whoever came first: of another line, or of a transaction that is long over. What the work then changed was
 * read from that transaction and written to it, so a session fell back and its keys were used again: receivers drop such a
 * message as a repetition, although the server acknowledged it. Here each work runs in the context that asked for it
 * (docs/decisions/0009-signal-sessions.md).
 */
export function repairQueue(
  cipher: Pick<SessionCipher, "queueJob"> = SessionCipher.prototype,
  builder: SessionBuilder = SessionBuilder.prototype,
): void {
  if (repaired.has(cipher.queueJob)) return;
  const { queueJob } = cipher;
  cipher.queueJob = async function (job) {
    const inContext = AsyncLocalStorage.snapshot();
    return await queueJob.call(this, () => inContext(job));
  };
  repaired.add(cipher.queueJob);
  const { initOutgoing } = builder;
  builder.initOutgoing = async function (this: SessionBuilder, keys) {
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

/**
 * The cost of deriving keys: it puts HKDF (RFC 5869) together of up to four HMACs, each an object of the runtime's streams.
 * The runtime has it as one call, with the same result.
 */
export function repairDerivation(derivation: Derivation = crypto): void {
  derivation.deriveSecrets = (input, salt, info, chunks = 3) => {
    const secrets = Buffer.from(hkdfSync("sha256", input, salt, info, chunks * CHUNK_BYTES));
    return Array.from({ length: chunks }, (_, i) => secrets.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES));
  };
}
