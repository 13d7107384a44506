/** Members of libsignal 6.0.0's classes that its published types lack. */
import type { Buffer } from "node:buffer";

/** One session with a device. */
export interface Session {
  /** `closed` is -1 while the session is open. */
  indexInfo: { closed: number; used: number };
  pendingPreKey?: unknown;
  serialize(): unknown;
  constructor: { deserialize(data: unknown): Session };
}

declare module "libsignal" {
  interface SessionRecord {
    sessions: Record<string, Session>;
    getOpenSession(): Session | undefined;
    setSession(session: Session): void;
    isClosed(session: Session): boolean;
  }
  interface SessionCipher {
    /** Bytes, which the published type declares as a string. */
    encrypt(data: Buffer): Promise<{ type: number; body: Uint8Array }>;
    decryptWithSessions(data: Uint8Array, sessions: Session[]): Promise<{ session: Session; plaintext: Buffer }>;
    doDecryptWhisperMessage(data: Uint8Array, session: Session): Promise<Buffer>;
    queueJob(job: () => Promise<unknown>): Promise<unknown>;
  }
  interface SessionBuilder {
    storage: SignalStorage;
  }
}
