/**
 * Repairs the Signal library's reading of a message by trial. It tries a message on each session with the sender, the
 * newest first, and a try on the wrong session spoils that one for good: what is then sent on it cannot be read by
 * anybody. Each reconnect starts new sessions while messages on older ones are still coming in, so it happens to every
 * line. Here each try is on a copy. The library makes its ciphers itself, so the repair is made to their class.
 */
import { SessionCipher } from "libsignal";
import type { Buffer } from "node:buffer";

interface Session {
  pendingPreKey?: unknown;
  serialize(): unknown;
  constructor: { deserialize(data: unknown): Session };
}

/** The part of the library's cipher that is repaired. */
export interface CipherPrototype {
  decryptWithSessions(data: Uint8Array, sessions: Session[]): Promise<{ session: Session; plaintext: Buffer }>;
}

const repaired = new WeakSet<object>();

/** Makes ciphers of this prototype leave sessions that do not fit as they are. */
export function repairLibsignal(prototype = SessionCipher.prototype as unknown as CipherPrototype): void {
  if (repaired.has(prototype)) return;
  repaired.add(prototype);
  const { decryptWithSessions } = prototype;
  prototype.decryptWithSessions = async function (data, sessions) {
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
}
