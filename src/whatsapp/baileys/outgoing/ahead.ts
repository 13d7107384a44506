/**
 * Encrypting a message ahead of its departure: what the library then asks for while it relays is there, so that the
 * message leaves without a commit between.
 *
 * A ciphertext is on disk with its session before it is kept (`isolation.ts`), and is given once. One that is never used
 * costs its receiver nothing: keys of a chain may be left out. Whatever begins a session anew forgets them all, and which
 * devices have one: that the library asks for twice a message, reading the whole session each time.
 */
import { Buffer } from "node:buffer";
import { encodeWAMessage, type proto, type SignalRepositoryWithLIDStore } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";

/** Devices of the next message's recipients, and some. */
const MOST_KEPT = 64;
const MOST_DEVICES = 5_000;

type Ciphertext = Awaited<ReturnType<SignalRepositoryWithLIDStore["encryptMessage"]>>;

interface Kept {
  plaintext: Uint8Array;
  ciphertext: Ciphertext;
}

export type Ahead = ReturnType<typeof makeAhead>;

export function makeAhead() {
  /** The last of each device. */
  const kept = new LRUCache<string, Kept>(atMost(MOST_KEPT));
  /** Devices for which a session was used, or found, that is still there. */
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
    /** The repository that answers from what was encrypted ahead. To be called once. */
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

    /** Encrypts for each of the devices, which all have sessions. Throws as the repository does. */
    async encrypt(message: proto.IMessage, devices: readonly string[]): Promise<void> {
      const data = encodeWAMessage(message);
      const plaintext = plaintextOf(data);
      await Promise.all(devices.map(async (jid) => {
        kept.set(jid, { plaintext, ciphertext: await repository!.encryptMessage({ jid, data }) });
      }));
    },
  };
}

/** The library pads what it encrypts at random, in a last byte that says by how much. */
function plaintextOf(padded: Uint8Array): Uint8Array {
  return padded.subarray(0, padded.length - padded.at(-1)!);
}
