/**
 * Decryption into the journal: the library's Signal repository, with the plaintext of each message written in the
 * transaction of its decryption (`journal.ts`).
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import {
  type BinaryNode,
  DEFAULT_CONNECTION_CONFIG,
  isJidMetaAI,
  isJidNewsletter,
  isJidStatusBroadcast,
  proto,
  type SignalAuthState,
  type SignalKeyStoreWithTransaction,
  type SignalRepositoryWithLIDStore,
  type SocketConfig,
  unpadRandomMax16,
} from "@whiskeysockets/baileys";
import { StoreError } from "../../../store/kv.ts";
import type { AuthState } from "../auth_state.ts";
import { isolate, makeAlone } from "../repairs/isolation.ts";
import { boundNames } from "../repairs/memory.ts";
import type { Journal, JournalEntry, StanzaPart, UndecryptedEntry } from "./journal.ts";

interface DecryptionEvents {
  decrypted(entry: JournalEntry): void;
  undecrypted(entry: UndecryptedEntry): void;
  /** A row could not be written: the connection must end before the network is told anything about the message. */
  broken(error: StoreError): void;
}

interface DecryptionOptions {
  journal: Journal;
  auth: Pick<AuthState, "refusedReads">;
}

type Transaction = (work: () => Promise<Uint8Array>) => Promise<Uint8Array>;

export class Decryption {
  readonly #options: DecryptionOptions;
  readonly #events: DecryptionEvents;
  /** The part of a stanza that a ciphertext is. */
  readonly #parts = new WeakMap<Uint8Array, StanzaPart>();

  constructor(options: DecryptionOptions, events: DecryptionEvents) {
    this.#options = options;
    this.#events = events;
  }

  /**
   * Notes which stanza a ciphertext belongs to. To be called with every message stanza, before the library, which is not
   * to acknowledge one that the network withheld before this resolves: then it is on disk, or `broken` was called.
   */
  async watch({ attrs, content }: BinaryNode): Promise<void> {
    if (!isKept(attrs.from) || !Array.isArray(content)) return;
    const stanza = [attrs.from, attrs.participant ?? "", attrs.id].join("|");
    for (const { tag, content: ciphertext } of content) {
      if (tag !== "enc" || !(ciphertext instanceof Uint8Array)) continue;
      const digest = createHash("sha256").update(ciphertext).digest("base64url").slice(0, 16);
      this.#parts.set(ciphertext, { part: `${stanza}|${digest}`, stanza, attrs: { ...attrs } });
    }
    if (isUnreadable(content)) await this.#noteUndecrypted({ stanza, attrs: { ...attrs } });
  }

  /** As the library wants it in its configuration. */
  makeSignalRepository(
    state: SignalAuthState,
    logger: SocketConfig["logger"],
    pnToLid?: Parameters<SocketConfig["makeSignalRepository"]>[2],
  ): SignalRepositoryWithLIDStore {
    const repository = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(state, logger, pnToLid);
    boundNames(repository.lidMapping);
    // The library hands over its store with transactions, whatever the type says.
    const store = state.keys as SignalKeyStoreWithTransaction;
    const { auth } = this.#options;
    const alone = makeAlone(store, repository.lidMapping, () => auth.refusedReads);
    /** Sender keys that were seen to with their message, until the library comes to it. */
    const seenTo = new Set<string>();

    /**
     * The library learns the sender key of a group member after the message that brings it has spent its own key, and
     * goes on when that fails: a connection that ended in between lost the key, and all that he wrote to the group had
     * to be asked for again, each message by itself. And it takes a key for any group from anybody, of which there would be
     * no end: here it counts in the group itself alone, as in other clients.
     */
    async function learn(plaintext: Uint8Array, { from, participant = from }: StanzaPart["attrs"]): Promise<void> {
      try {
        const message = proto.Message.decode(unpadRandomMax16(plaintext));
        const item = (message.deviceSentMessage?.message ?? message).senderKeyDistributionMessage;
        if (!item?.groupId) return;
        seenTo.add(nameOf(item));
        if (item.groupId === from) {
          await repository.processSenderKeyDistributionMessage({ item, authorJid: participant! });
        }
      } catch (error) {
        // What makes no sense is no reason to lose what came with it.
        if (error instanceof StoreError) throw error;
      }
    }

    return {
      ...isolate(repository, alone),
      decryptMessage: (message) =>
        this.#decryptAndKeep(message.ciphertext, (work) => alone(message.jid, work), {
          store,
          decrypt: () => repository.decryptMessage(message),
          learn,
        }),
      decryptGroupMessage: (message) =>
        this.#decryptAndKeep(message.msg, (work) => alone(message.group, work), {
          store,
          decrypt: () => repository.decryptGroupMessage(message),
        }),
      async processSenderKeyDistributionMessage(message) {
        if (!seenTo.delete(nameOf(message.item))) await repository.processSenderKeyDistributionMessage(message);
      },
    };
  }

  /** Decrypts and keeps the plaintext in one transaction. */
  async #decryptAndKeep(
    ciphertext: Uint8Array,
    transaction: Transaction,
    { store, decrypt, learn }: {
      store: SignalKeyStoreWithTransaction;
      decrypt: () => Promise<Uint8Array>;
      learn?: (plaintext: Uint8Array, attrs: StanzaPart["attrs"]) => Promise<void>;
    },
  ): Promise<Uint8Array> {
    const { journal } = this.#options;
    const part = this.#parts.get(ciphertext);
    if (!part) return await transaction(decrypt);
    let entry: JournalEntry | undefined;
    try {
      const plaintext = await transaction(async () => {
        const plaintext = await decrypt();
        await learn?.(plaintext, part.attrs);
        entry = journal.entryOf(part, plaintext);
        await journal.keep(entry, store);
        return plaintext;
      });
      this.#events.decrypted(entry!);
      return plaintext;
    } catch (error) {
      try {
        if (error instanceof StoreError) throw error;
        const again = await journal.recall(part.part);
        if (again) return again;
      } catch (failure) {
        if (failure instanceof StoreError) this.#events.broken(failure);
        throw error;
      }
      await this.#noteUndecrypted(part);
      throw error;
    }
  }

  async #noteUndecrypted(part: Pick<StanzaPart, "stanza" | "attrs">): Promise<void> {
    try {
      this.#events.undecrypted(await this.#options.journal.keepUndecrypted(part));
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#events.broken(error);
    }
  }
}

function nameOf({ groupId, axolotlSenderKeyDistributionMessage: key }: proto.Message.ISenderKeyDistributionMessage) {
  return `${groupId} ${Buffer.from(key ?? []).toString("base64")}`;
}

/** What the library decrypts. */
const CIPHERS = new Set<string | undefined>(["msg", "pkmsg", "skmsg"]);

/**
 * The network names a message without its content, as one to be seen once on the phone, or gives it in another cipher, as
 * an assistant's answer: the phone may send it on.
 */
function isUnreadable(content: BinaryNode[]): boolean {
  const isReadable = ({ tag, attrs, content }: BinaryNode) =>
    tag === "enc" && CIPHERS.has(attrs.type) && content instanceof Uint8Array;
  return content.some(({ tag }) => tag === "unavailable" || tag === "enc") && !content.some(isReadable);
}

/** Status posts and channels are no messages to the line, and of the owner's chat with an assistant the library makes none. */
function isKept(from: string | undefined): boolean {
  return from !== undefined && !isJidStatusBroadcast(from) && !isJidNewsletter(from) && !isJidMetaAI(from);
}
