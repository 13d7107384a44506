/** A phone's encryption, in memory: 1:1 sessions with libsignal, and sender keys for groups. */
import { ProtocolAddress, SessionBuilder, SessionCipher, SessionRecord, type SignalStorage } from "libsignal";
import { Buffer } from "node:buffer";
import {
  GroupCipher,
  GroupSessionBuilder,
  SenderKeyDistributionMessage,
  SenderKeyName,
  SenderKeyRecord,
} from "@whiskeysockets/baileys/lib/Signal/Group/index.js";
import type { Session } from "../../base/libsignal.ts";
import type { KeyBundle } from "../world/key_store.ts";
import { isLid, parseJid } from "../world/stanza.ts";
import { type PhoneKeys, typedPublic } from "./keys.ts";

/** A message encrypted for one device: `pkmsg` also starts the session, `msg` continues it. */
type SessionCiphertext = { type: "pkmsg" | "msg"; body: Uint8Array };

/** The 1:1 sessions. Devices are identified by their `@lid` address. */
export class SignalSessions {
  /**
   * Serialised records by address. The library changes a record before it has verified the message, so it gets a copy.
   */
  #records = new Map<string, Uint8Array>();
  #keys: PhoneKeys;

  constructor(keys: PhoneKeys) {
    this.#keys = keys;
  }

  has(address: ProtocolAddress): boolean {
    return this.#records.has(address.toString());
  }

  /** Starts a session for sending; an older one can still decrypt. */
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
    // The library accepts a missing one-time key, its types do not.
    await new SessionBuilder(this.#storage(OutgoingRecord), address).initOutgoing(session as Session);
  }

  /** Encrypts for a device. Throws if there is no session; call `start` first. */
  async encrypt(address: ProtocolAddress, plaintext: Uint8Array): Promise<SessionCiphertext> {
    const cipher = new QuietCipher(this.#storage(OutgoingRecord), address);
    const { type, body } = await cipher.encrypt(Buffer.from(plaintext));
    return { type: type === 3 ? "pkmsg" : "msg", body };
  }

  /** Decrypts a message. Throws libsignal's errors: `MessageCounterError` if read before, others for lost sessions. */
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
      // Returns a new empty record if there is none, because the library prints when it creates one itself.
      loadSession: (id) => {
        const stored = this.#records.get(id);
        return Promise.resolve(stored ? Record.deserialize(stored) : new Record());
      },
      storeSession: (id: string, record: SessionRecord) => {
        this.#records.set(id, record.serialize());
        return Promise.resolve();
      },
      // Trust on first use, and after a change as well, like the apps by default.
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

/** Returns the Signal address of a device jid; `@lid` users carry the domain number 1, as Baileys writes it. */
export function signalAddress(jid: string): ProtocolAddress {
  const address = parseJid(jid);
  if (!address?.user) throw new Error(`not a device address: ${jid}`);
  const { user, device } = address;
  return new ProtocolAddress(isLid(jid) ? `${user}_1` : user, device);
}

/** Appends padding of `length` (1 to 16) bytes, each holding the length, as every client does. */
export function pad(message: Uint8Array, length: number): Buffer {
  return Buffer.concat([message, Buffer.alloc(length, length)]);
}

/** Removes the padding. Throws if it is invalid. */
export function unpad(padded: Uint8Array): Uint8Array {
  const length = padded.at(-1) ?? 0;
  if (length === 0 || length > padded.length) throw new Error("bad padding");
  return padded.subarray(0, padded.length - length);
}

// libsignal's records and ciphers print whole sessions, private keys included, to the console. The subclasses below
// override the methods that do so, so that no log needs a filter (promise 6).

/** Closed sessions kept for late messages; the library keeps as many. */
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
 * The same sessions, for decrypting. The library warns about open or closed sessions that it finds then, so this record
 * shows it neither, and closes all but the newest itself.
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
 * The library's cipher, without printing when a message fits no session. In the library, trying a message on the wrong
 * session also breaks that session for good (after a simultaneous start, both sides then lose each other); here each
 * attempt uses a copy.
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
        // "Already used" from the right session is more informative than the MAC errors of the others.
        if (!(failure instanceof Error) || failure.name !== "MessageCounterError") failure = error;
      }
    }
    throw failure;
  }
}

/** A sender in a group. For a receiver, messages from a number and from its LID have different senders. */
interface GroupSender {
  group: string;
  /** Jid of the sending device, in the form that the network uses. */
  device: string;
}

/**
 * The sender keys, with the group ciphers of the Baileys library. Each sender has one key per group. The sender sends it
 * to each device in a pairwise message (the distribution), then encrypts once for all.
 */
export class SenderKeys {
  #records = new Map<string, Uint8Array>();

  /** Encrypts for the whole group; with `distribution` a device can read this message and later ones. */
  async encrypt(sender: GroupSender, plaintext: Uint8Array): Promise<{ body: Uint8Array; distribution: Uint8Array }> {
    const distribution = await this.distribution(sender);
    const body = await new GroupCipher(this.#store, nameOf(sender)).encrypt(Buffer.from(plaintext));
    return { body, distribution };
  }

  /** Returns what a device needs to read messages from now on; creates a key if there is none. */
  async distribution(sender: GroupSender): Promise<Uint8Array> {
    return (await new GroupSessionBuilder(this.#store).create(nameOf(sender))).serialize();
  }

  /** Processes a sender's distribution. Throws if it is malformed. */
  async learn(sender: GroupSender, distribution: Uint8Array): Promise<void> {
    const message = new SenderKeyDistributionMessage(null, null, null, null, Buffer.from(distribution));
    await new GroupSessionBuilder(this.#store).process(nameOf(sender), message);
  }

  /** Decrypts a message. Throws if the sender's key is unknown, the message is damaged, or it was read before. */
  async decrypt(sender: GroupSender, body: Uint8Array): Promise<Uint8Array> {
    return await new GroupCipher(this.#store, nameOf(sender)).decrypt(Buffer.from(body));
  }

  /** Deletes a key, so that the next message creates a new one. */
  forget(sender: GroupSender): void {
    this.#records.delete(nameOf(sender).toString());
  }

  #store = {
    loadSenderKey: (name: SenderKeyName): Promise<SenderKeyRecord> => {
      const record = this.#records.get(name.toString());
      return Promise.resolve(record ? SenderKeyRecord.deserialize(record) : new SenderKeyRecord());
    },
    storeSenderKey: (name: SenderKeyName, record: SenderKeyRecord): Promise<void> => {
      this.#records.set(name.toString(), Buffer.from(JSON.stringify(record.serialize())));
      return Promise.resolve();
    },
  };
}

function nameOf({ group, device }: GroupSender): SenderKeyName {
  const { id, deviceId } = signalAddress(device);
  return new SenderKeyName(group, { id, deviceId, toString: () => `${id}.${deviceId}` });
}
