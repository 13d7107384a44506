/**
 * Encrypts a message before its departure. When the library then asks for the ciphertexts while relaying, they are
 * available, so that the message leaves without another commit.
 *
 * A ciphertext is on disk with its session before it is cached (`isolation.ts`), and is used once. An unused one does
 * no harm: a receiver can skip keys of a chain. When a session is replaced, all cached ciphertexts are dropped, and so
 * is the list of devices with sessions, which the library queries twice per message, reading the whole session each
 * time.
 */
import { Buffer } from "node:buffer";
import { encodeWAMessage, type proto, type SignalRepositoryWithLIDStore } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";

/** Enough for the devices of the next message's recipients. */
const MOST_KEPT = 64;
const MOST_DEVICES = 5_000;

type Ciphertext = Awaited<ReturnType<SignalRepositoryWithLIDStore["encryptMessage"]>>;

export type Ahead = ReturnType<typeof makeAhead>;

export function makeAhead() {
  /** The last ciphertext of each device. */
  const kept = new LRUCache<string, { plaintext: Uint8Array; ciphertext: Ciphertext }>(atMost(MOST_KEPT));
  /** Devices known to have a session, because it was found since sessions last changed. */
  const open = new LRUCache<string, true>(atMost(MOST_DEVICES));
  let repository: SignalRepositoryWithLIDStore | undefined;

  function forget(): void {
    kept.clear();
    open.clear();
  }

  function forgetting<Given extends unknown[], Answer>(call: (...given: Given) => Promise<Answer>) {
    return async (...given: Given): Promise<Answer> => {
      try {
        return await call(...given);
      } finally {
        forget();
      }
    };
  }

  return {
    /** Wraps the repository so that it answers with ciphertexts made ahead. Must be called once only. */
    around(given: SignalRepositoryWithLIDStore): SignalRepositoryWithLIDStore {
      repository = given;
      return {
        ...given,
        async encryptMessage(message) {
          const { jid, data } = message;
          const ahead = kept.get(jid);
          if (ahead && Buffer.compare(ahead.plaintext, plaintextOf(data)) === 0) {
            kept.delete(jid);
            return ahead.ciphertext;
          }
          try {
            return await given.encryptMessage(message);
          } catch (error) {
            forget();
            throw error;
          }
        },
        async validateSession(jid) {
          if (open.has(jid)) return { exists: true };
          const found = await given.validateSession(jid);
          if (found.exists) open.set(jid, true);
          return found;
        },
        injectE2ESession: forgetting(given.injectE2ESession),
        migrateSession: forgetting(given.migrateSession),
        deleteSession: forgetting(given.deleteSession),
      };
    },

    /** Encrypts for each of the devices, which must all have sessions. Throws as the repository does. */
    async encrypt(message: proto.IMessage, devices: readonly string[]): Promise<void> {
      const data = encodeWAMessage(message);
      const plaintext = plaintextOf(data);
      await Promise.all(devices.map(async (jid) => {
        kept.set(jid, { plaintext, ciphertext: await repository!.encryptMessage({ jid, data }) });
      }));
    },
  };
}

/** Removes the library's random padding. The last byte gives its length. */
function plaintextOf(padded: Uint8Array): Uint8Array {
  return padded.subarray(0, padded.length - padded.at(-1)!);
}
