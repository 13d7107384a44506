/** The 1:1 Signal sessions of a phone, by libsignal, kept in memory. Devices are known by their `@lid` address. */
import { ProtocolAddress, SessionBuilder, SessionCipher, SessionRecord, type SignalStorage } from "libsignal";
import { Buffer } from "node:buffer";
import type { Session } from "../../base/libsignal.ts";
import { isLid, parseJid } from "../world/address.ts";
import type { KeyBundle } from "../world/device.ts";
import { type PhoneKeys, typedPublic } from "./keys.ts";

/** How a message is encrypted for one device: `pkmsg` also starts the session, `msg` continues it. */
type SessionCiphertext = { type: "pkmsg" | "msg"; body: Uint8Array };

export class SignalSessions {
  /** Serialised records by address: the library changes a record before it has verified the message. */
  #records = new Map<string, Uint8Array>();
  #keys: PhoneKeys;

  constructor(keys: PhoneKeys) {
    this.#keys = keys;
  }

  has(address: ProtocolAddress): boolean {
    return this.#records.has(address.toString());
  }

  /** Starts a session for sending; an older one stays readable. */
  async start(address: ProtocolAddress, bundle: KeyBundle): Promise<void> {
    const [preKey] = bundle.preKeys;
    type Session = Parameters<SessionBuilder["initOutgoing"]>[0];
    const session = {
      registrationId: bundle.registrationId,
      identityKey: typedPublic(bundle.identityKey),
      signedPreKey: {
        keyId: bundle.signedPreKey.id,
        publicKey: typedPublic(bundle.signedPreKey.publicKey),
        signature: bundle.signedPreKey.signature,
      },
      preKey: preKey && { keyId: preKey.id, publicKey: typedPublic(preKey.publicKey) },
    };
    // The library takes a missing one-time key, its types do not.
    await new SessionBuilder(this.#storage(OutgoingRecord), address).initOutgoing(session as Session);
  }

  /** Throws when there is no session: `start` one first. */
  async encrypt(address: ProtocolAddress, plaintext: Uint8Array): Promise<SessionCiphertext> {
    const cipher = new QuietCipher(this.#storage(OutgoingRecord), address);
    const { type, body } = await cipher.encrypt(Buffer.from(plaintext));
    return { type: type === 3 ? "pkmsg" : "msg", body };
  }

  /** Throws what libsignal throws: `MessageCounterError` for a message that was read before, others for lost sessions. */
  decrypt(address: ProtocolAddress, { type, body }: SessionCiphertext): Promise<Uint8Array> {
    const cipher = new QuietCipher(this.#storage(IncomingRecord), address);
    const data = Buffer.from(body);
    return type === "pkmsg" ? cipher.decryptPreKeyWhisperMessage(data) : cipher.decryptWhisperMessage(data);
  }

  #storage(Record: typeof OutgoingRecord): SignalStorage {
    const keys = this.#keys;
    const pair = (key: { public: Uint8Array; private: Uint8Array }) => ({
      pubKey: typedPublic(key.public),
      privKey: Buffer.from(key.private),
    });
    return {
      // A fresh empty record, so that the library never makes one of its own, which would print.
      loadSession: (id) => {
        const stored = this.#records.get(id);
        return Promise.resolve(stored ? Record.deserialize(stored) : new Record());
      },
      storeSession: (id: string, record: SessionRecord) => {
        this.#records.set(id, record.serialize());
        return Promise.resolve();
      },
      // Trust on first use, and after a change too, as the apps do by default.
      isTrustedIdentity: () => true,
      loadPreKey: (id) => {
        const found = keys.preKeys.get(Number(id));
        return Promise.resolve(found && pair(found));
      },
      removePreKey: (id) => void keys.preKeys.delete(id),
      loadSignedPreKey: () => pair(keys.signedPreKey.keyPair),
      getOurRegistrationId: () => keys.registrationId,
      getOurIdentity: () => pair(keys.identity),
    };
  }
}

/** Signal's address of a device jid: a `@lid` user carries the domain number 1, as Baileys writes it. */
export function signalAddress(jid: string): ProtocolAddress {
  const address = parseJid(jid);
  if (!address?.user) throw new Error(`not a device address: ${jid}`);
  const { user, device } = address;
  return new ProtocolAddress(isLid(jid) ? `${user}_1` : user, device);
}

/** Random padding of 1 to 16 bytes, each holding the length, as every client appends to a message. */
export function pad(message: Uint8Array, length: number): Buffer {
  return Buffer.concat([message, Buffer.alloc(length, length)]);
}

/** Throws when the padding is impossible. */
export function unpad(padded: Uint8Array): Uint8Array {
  const length = padded.at(-1) ?? 0;
  if (length === 0 || length > padded.length) throw new Error("bad padding");
  return padded.subarray(0, padded.length - length);
}

// libsignal without its printing: its records and ciphers write whole sessions, private keys included, to the console.
// The methods that do so are overridden, so that no log needs a filter (promise 6).

/** Closed sessions are kept so that late messages can still be read; the library keeps as many. */
const SESSIONS_KEPT = 40;

/** The sessions with one device, for encrypting and for starting a session. */
class OutgoingRecord extends SessionRecord {
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
class IncomingRecord extends OutgoingRecord {
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
class QuietCipher extends SessionCipher {
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
