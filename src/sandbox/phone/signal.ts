/** The 1:1 Signal sessions of a phone, by libsignal, kept in memory. Devices are known by their `@lid` address. */
import { jidDecode } from "@whiskeysockets/baileys";
import { ProtocolAddress, SessionBuilder, type SessionRecord, type SignalStorage } from "libsignal";
import { Buffer } from "node:buffer";
import type { KeyBundle } from "../world/device.ts";
import { type PhoneKeys, typedPublic } from "./keys.ts";
import { IncomingRecord, OutgoingRecord, QuietCipher } from "./quiet_libsignal.ts";

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

  forget(address: ProtocolAddress): void {
    this.#records.delete(address.toString());
  }

  /** Throws when there is no session: `start` one first. */
  async encrypt(address: ProtocolAddress, plaintext: Uint8Array): Promise<SessionCiphertext> {
    const cipher = new QuietCipher(this.#storage(OutgoingRecord), address);
    const { type, body } = await cipher.encrypt(Buffer.from(plaintext));
    return { type: type === 3 ? "pkmsg" : "msg", body: body as unknown as Uint8Array };
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
  const decoded = jidDecode(jid);
  if (!decoded?.user) throw new Error(`not a device address: ${jid}`);
  const user = decoded.server === "lid" ? `${decoded.user}_1` : decoded.user;
  return new ProtocolAddress(user, decoded.device ?? 0);
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
