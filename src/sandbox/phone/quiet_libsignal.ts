/**
 * libsignal without its printing. Its records and ciphers write whole sessions, private keys included, to the console.
 * The methods that do so are overridden here, so that no log needs a filter (promise 6).
 */
import { SessionCipher, SessionRecord } from "libsignal";
import type { Buffer } from "node:buffer";
import type { Session } from "../../base/libsignal.ts";

/** Closed sessions are kept so that late messages can still be read; the library keeps as many. */
const SESSIONS_KEPT = 40;

/** The sessions with one device, for encrypting and for starting a session. */
export class OutgoingRecord extends SessionRecord {
  closeSession(session: Session): void {
    session.indexInfo.closed = session.indexInfo.used;
  }

  removeOldSessions(): void {
    const closed = Object.entries(this.sessions).filter(([, session]) => session.indexInfo.closed !== -1);
    closed.sort(([, a], [, b]) => b.indexInfo.closed - a.indexInfo.closed);
    for (const [key] of closed.slice(SESSIONS_KEPT)) delete this.sessions[key];
  }
}

/**
 * The same sessions, for decrypting: the library warns about sessions that it finds open or closed there, so this
 * record shows it neither, and itself leaves only the newest open.
 */
export class IncomingRecord extends OutgoingRecord {
  override getOpenSession(): undefined {
    return undefined;
  }

  override isClosed(): boolean {
    return false;
  }

  override setSession(session: Session): void {
    for (const other of Object.values(this.sessions)) {
      if (other.indexInfo.closed === -1) this.closeSession(other);
    }
    super.setSession(session);
  }
}

/**
 * The library's cipher, silent about messages that fit no session. Trying a message on the wrong session would also
 * spoil that session for good (two sides that start at the same time then lose each other), so each try is on a copy.
 */
export class QuietCipher extends SessionCipher {
  override async decryptWithSessions(
    data: Uint8Array,
    sessions: Session[],
  ): Promise<{ session: Session; plaintext: Buffer }> {
    let failure: unknown = new Error("No session fits the message");
    for (const session of sessions) {
      const copy = session.constructor.deserialize(session.serialize());
      try {
        const plaintext = await this.doDecryptWhisperMessage(data, copy);
        Object.assign(session, copy, { pendingPreKey: copy.pendingPreKey });
        return { session, plaintext };
      } catch (error) {
        // "Used already" from the right session says more than the MAC errors of the others.
        if (!(failure instanceof Error) || failure.name !== "MessageCounterError") failure = error;
      }
    }
    throw failure;
  }
}
