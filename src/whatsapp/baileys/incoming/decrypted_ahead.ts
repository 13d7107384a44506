/**
 * Decrypts people's messages before the library comes to them, so that those of several chats share a flush: the library
 * takes one message at a time, and waits until its ratchet is on disk.
 *
 * What can't be decrypted ahead, the library decrypts in its turn. Until then nothing of its chat is decrypted ahead, so
 * that a chat keeps its order (promise 4).
 */
import { type BinaryNode, isLidUser, isPnUser, type SignalRepositoryWithLIDStore } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import { FairSemaphore } from "../../../base/fair_semaphore.ts";
import { StoreError } from "../../../store/kv.ts";
import { chatOf, LONGEST_CIPHERTEXT } from "./journal.ts";
import { childrenOf, isMistaken, LONGEST_ID } from "../stanza.ts";

/** Plaintexts that may wait for the library. */
const AT_ONCE = 16;
const MOST_CHATS = 1_000;

type Message = Parameters<SignalRepositoryWithLIDStore["decryptMessage"]>[0];
type Work = () => Promise<Uint8Array>;

interface AheadDeps {
  lidMapping: Pick<SignalRepositoryWithLIDStore["lidMapping"], "getLIDForPN">;
  /** Decrypts and keeps in one transaction, with `within` around the decryption. */
  decrypt(message: Message, within: (work: Work) => Promise<Uint8Array>): Promise<Uint8Array>;
}

export type DecryptedAhead = ReturnType<typeof makeDecryptedAhead>;

export function makeDecryptedAhead({ lidMapping, decrypt }: AheadDeps) {
  const turns = new FairSemaphore({ inAll: AT_ONCE, each: 1 });
  /** By ciphertext: the plaintext; null if the library has to decrypt it. Rejects with StoreError. */
  const begun = new WeakMap<Uint8Array, Promise<Uint8Array | null>>();
  /** By chat: ciphertexts that wait for the library. */
  const left = new LRUCache<string, Set<Uint8Array>>(atMost(MOST_CHATS));

  function leave(chat: string, ciphertext: Uint8Array): void {
    left.set(chat, (left.get(chat) ?? new Set()).add(ciphertext));
  }

  async function attempt(
    stanza: BinaryNode,
    ciphertext: Uint8Array,
    type: Message["type"],
  ): Promise<Uint8Array | null> {
    const chat = chatOf(stanza);
    try {
      const jid = await addressOf(stanza, lidMapping);
      return await decrypt({ jid, type, ciphertext }, async (work) => {
        try {
          if (left.has(chat)) throw new Error("an earlier message of the chat waits for the library");
          return await work();
        } catch (error) {
          leave(chat, ciphertext);
          throw error;
        }
      });
    } catch (error) {
      if (error instanceof StoreError) throw error;
      return null;
    }
  }

  return {
    /** Must be called with each message stanza in the order of arrival, before the library sees it. */
    begin(stanza: BinaryNode): void {
      const chat = chatOf(stanza);
      const parts = childrenOf(stanza, "enc").flatMap(({ attrs: { type }, content }) =>
        content instanceof Uint8Array ? [{ type, ciphertext: content }] : []
      );
      const [part, another] = parts;
      if (part === undefined) return;
      const { type, ciphertext } = part;
      const isTooLong = ciphertext.length > LONGEST_CIPHERTEXT;
      if (another || isTooLong || (type !== "msg" && type !== "pkmsg") || !isPlain(stanza) || left.has(chat)) {
        for (const { ciphertext } of parts) leave(chat, ciphertext);
        return;
      }
      const plaintext = turns.run({ tenant: chat }, () => attempt(stanza, ciphertext, type));
      begun.set(ciphertext, plaintext);
      // The library may never come to it: a connection ends on it.
      plaintext.catch(() => {});
    },

    /** Returns the plaintext of a message whose turn it is; decrypts it by `work` if that was not done ahead. */
    async take(ciphertext: Uint8Array, stanza: Pick<BinaryNode, "attrs"> | undefined, work: Work): Promise<Uint8Array> {
      const plaintext = await begun.get(ciphertext);
      if (plaintext) return plaintext;
      try {
        return await work();
      } finally {
        const chat = stanza ? chatOf(stanza) : "";
        const waiting = left.get(chat);
        waiting?.delete(ciphertext);
        if (waiting?.size === 0) left.delete(chat);
      }
    },
  };
}

/** Whether the stanza is what a person wrote to the line alone. */
function isPlain(stanza: BinaryNode): boolean {
  const { from, id = "", participant, recipient, category } = stanza.attrs;
  return (isPnUser(from) || isLidUser(from)) === true && participant === undefined && recipient === undefined &&
    category === undefined && id !== "" && id.length <= LONGEST_ID && !isMistaken(stanza);
}

/** Returns the address of the session. Throws if the library has to learn it from the stanza. */
async function addressOf({ attrs }: BinaryNode, lidMapping: AheadDeps["lidMapping"]): Promise<string> {
  const from = attrs.from!;
  if (isLidUser(from)) return from;
  const lid = await lidMapping.getLIDForPN(from);
  if (lid === null && attrs.sender_lid !== undefined) throw new Error("the sender's session is to be moved");
  return lid ?? from;
}
