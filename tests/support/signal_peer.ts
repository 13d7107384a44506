/** A correspondent with real Signal encryption, for tests of the adapter's key handling without a network. */
import {
  addTransactionCapability,
  type AuthenticationCreds,
  Curve,
  DEFAULT_CONNECTION_CONFIG,
  encodeWAMessage,
  generateSignalPubKey,
  initAuthCreds,
  proto,
  type SignalDataTypeMap,
  type SignalKeyStore,
  type SignalKeyStoreWithTransaction,
  type SocketConfig,
  unpadRandomMax16,
} from "@whiskeysockets/baileys";
import pino from "pino";
import { quietLogger } from "../../src/whatsapp/baileys/repairs/containment.ts";

type Repository = ReturnType<SocketConfig["makeSignalRepository"]>;

export const quiet = quietLogger(pino({ level: "silent" }));

/** The library's transactions around a key store. */
export function withTransactions(store: SignalKeyStore): SignalKeyStoreWithTransaction {
  return addTransactionCapability(store, quiet, { maxCommitRetries: 1, delayBetweenTriesMs: 1 });
}

export interface SignalPeer {
  readonly jid: string;
  readonly creds: AuthenticationCreds;
  readonly keys: SignalKeyStoreWithTransaction;
  readonly repository: Repository;
  /** Starts a session with the owner of these keys, at the cost of a pre-key of theirs. */
  meet(other: { jid: string; creds: AuthenticationCreds; keys: SignalKeyStore }): Promise<void>;
  encrypt(jid: string, said: string | proto.IMessage): Promise<{ type: "pkmsg" | "msg"; ciphertext: Uint8Array }>;
  /** The text of what a peer encrypted for this one. Throws what the library throws. */
  decrypt(jid: string, message: { type: "pkmsg" | "msg"; ciphertext: Uint8Array }): Promise<string>;
}

export function signalPeer(jid: string): SignalPeer {
  const creds = initAuthCreds();
  const keys = withTransactions(memoryKeys());
  const repository = DEFAULT_CONNECTION_CONFIG.makeSignalRepository({ creds, keys }, quiet);
  return {
    jid,
    creds,
    keys,
    repository,
    async meet(other) {
      const preKey = Curve.generateKeyPair();
      await other.keys.set({ "pre-key": { "7": preKey } });
      const { signedPreKey, registrationId, signedIdentityKey } = other.creds;
      await repository.injectE2ESession({
        jid: other.jid,
        session: {
          registrationId,
          identityKey: generateSignalPubKey(signedIdentityKey.public),
          signedPreKey: {
            keyId: signedPreKey.keyId,
            publicKey: generateSignalPubKey(signedPreKey.keyPair.public),
            signature: signedPreKey.signature,
          },
          preKey: { keyId: 7, publicKey: generateSignalPubKey(preKey.public) },
        },
      });
    },
    encrypt(jid, said) {
      const message = proto.Message.fromObject(typeof said === "string" ? { conversation: said } : said);
      return repository.encryptMessage({ jid, data: encodeWAMessage(message) });
    },
    async decrypt(jid, message) {
      const plaintext = await repository.decryptMessage({ jid, ...message });
      return proto.Message.decode(unpadRandomMax16(plaintext)).conversation ?? "";
    },
  };
}

/** Keys in memory, copied in and out as a store would. */
export function memoryKeys(): SignalKeyStore {
  const rows = new Map<string, unknown>();
  return {
    get: <T extends keyof SignalDataTypeMap>(type: T, ids: string[]) =>
      Object.fromEntries(ids.flatMap((id) => rows.has(`${type} ${id}`) ? [[id, rows.get(`${type} ${id}`)]] : [])) as {
        [id: string]: SignalDataTypeMap[T];
      },
    set(data) {
      for (const [type, values] of Object.entries(data)) {
        for (const [id, value] of Object.entries(values ?? {})) {
          if (value === null) rows.delete(`${type} ${id}`);
          else rows.set(`${type} ${id}`, structuredClone(value));
        }
      }
    },
  };
}
