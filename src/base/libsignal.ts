/** Members of libsignal 6.0.0's classes that its published types lack. */
import type { Buffer } from "node:buffer";

/** One session with a device. */
export interface Session {
  /** `closed` is -1 while the session is open. */
  indexInfo: { closed: number; used: number };
  pendingPreKey?: unknown;
  serialize(): unknown;
  /** Oldest first, each with the key that names it. */
  chains(): Iterable<[key: Buffer, chain: Chain]>;
  deleteChain(key: Buffer): void;
  constructor: { deserialize(data: unknown): Session };
}

/** Messages of one side of a session, between two of the other. */
interface Chain {
  /** 1 sending, 2 receiving. */
  chainType: number;
  /** Keys of messages that were skipped, by their number in the chain. */
  messageKeys: Record<number, unknown>;
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
