/**
 * Decryption with a journal: wraps the library's Signal repository so that each plaintext is written in the transaction
 * of its decryption (`journal.ts`).
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
import { unlessMalformed } from "../../../base/retry.ts";
import { StoreError } from "../../../store/kv.ts";
import type { AuthState } from "../auth_state.ts";
import { boundNames, isolate, makeIsolation } from "../repairs/isolation.ts";
import { bounded, MOST_READS, unlessTooMany } from "./bounded.ts";
import { type DecryptedAhead, makeDecryptedAhead } from "./decrypted_ahead.ts";
import {
  type Journal,
  type JournalEntry,
  LONGEST_CIPHERTEXT,
  NOTHING,
  type StanzaPart,
  type UndecryptedEntry,
} from "./journal.ts";

interface DecryptionDeps {
  journal: Journal;
  auth: Pick<AuthState, "refusedReads">;
  decrypted(entry: JournalEntry): void;
  undecrypted(entry: UndecryptedEntry): void;
  /** A row could not be written. The connection must end before the network is told anything about the message. */
  broken(error: StoreError): void;
}

type Transaction = (work: () => Promise<Uint8Array>) => Promise<Uint8Array>;

interface Opening {
  store: SignalKeyStoreWithTransaction;
  decrypt: () => Promise<Uint8Array>;
  learn?: (plaintext: Uint8Array, attrs: StanzaPart["attrs"]) => Promise<void>;
}

export class Decryption {
  readonly #deps: DecryptionDeps;
  /** The stanza part that each ciphertext belongs to. */
  readonly #parts = new WeakMap<Uint8Array, StanzaPart>();
  #ahead: DecryptedAhead | undefined;

  constructor(deps: DecryptionDeps) {
    this.#deps = deps;
  }

  /**
   * Records which stanza each ciphertext belongs to, and begins to decrypt what can be decrypted ahead. Must be called
   * with every message stanza before the library sees it. If the content is unreadable, the library must not acknowledge the stanza before this resolves: by then
   * the loss is on disk, or `broken` was called.
   */
  async watch(message: BinaryNode): Promise<void> {
    const { attrs, content } = message;
    if (!isKept(attrs.from) || !Array.isArray(content)) return;
    const stanza = [attrs.from, attrs.participant ?? "", attrs.id].join("|");
    for (const { tag, content: ciphertext } of content) {
      if (tag !== "enc" || !(ciphertext instanceof Uint8Array)) continue;
      const hashed = createHash("sha256").update(ciphertext.subarray(0, LONGEST_CIPHERTEXT));
      const part = `${stanza}|${hashed.digest("base64url").slice(0, 16)}`;
      this.#parts.set(ciphertext, {
        part,
        stanza,
        attrs: { ...attrs },
        ...(isTooLong(ciphertext) && { isTooLong: true }),
      });
    }
    this.#ahead?.begin(message);
    if (!isUnreadable(content)) return;
    const withheld = withheldIn(content);
    await this.#noteUndecrypted({ stanza, attrs: { ...attrs }, ...(withheld && { withheld }) });
  }

  /** Builds the repository for the library's configuration. */
  makeSignalRepository(
    state: SignalAuthState,
    logger: SocketConfig["logger"],
    pnToLid?: Parameters<SocketConfig["makeSignalRepository"]>[2],
  ): SignalRepositoryWithLIDStore {
    const repository = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(state, logger, pnToLid);
    boundNames(repository.lidMapping);
    // The library passes its store with transactions, although the type does not say so.
    const store = state.keys as SignalKeyStoreWithTransaction;
    const { auth } = this.#deps;
    const alone = makeIsolation(store, repository.lidMapping, () => auth.refusedReads);
    /** Sender keys handled along with their message, until the library processes them. */
    const handled = new Set<string>();

    /**
     * Learns a group member's sender key in the transaction of the message that brings it. The library does so later,
     * after the message has spent its own key, and continues if that fails. A connection that ended in between lost the
     * sender key, and each of the member's later messages to the group had to be requested again.
     *
     * The library also accepts a key for any group from anyone, without limit. Here, as in other clients, a key counts
     * only if it arrives in the group itself.
     */
    async function learn(plaintext: Uint8Array, { from, participant = from }: StanzaPart["attrs"]): Promise<void> {
      try {
        const message = proto.Message.decode(bounded(unpadRandomMax16(plaintext)));
        const item = (message.deviceSentMessage?.message ?? message).senderKeyDistributionMessage;
        if (!item?.groupId) return;
        handled.add(nameOf(item));
        if (item.groupId === from) {
          await repository.processSenderKeyDistributionMessage({ item, authorJid: participant! });
        }
      } catch (error) {
        // A malformed sender key must not cost the message that brought it.
        if (error instanceof StoreError) throw error;
      }
    }

    const ahead = this.#ahead = makeDecryptedAhead({
      lidMapping: repository.lidMapping,
      decrypt: async (message, within) => {
        const transaction: Transaction = (work) => alone(message.jid, () => within(work));
        const decrypt = () => repository.decryptMessage(message);
        try {
          return await this.#open(this.#parts.get(message.ciphertext)!, transaction, { store, decrypt, learn });
        } catch (error) {
          if (error instanceof StoreError) this.#deps.broken(error);
          throw error;
        }
      },
    });
    const inTurn = (ciphertext: Uint8Array, transaction: Transaction, opening: Opening) =>
      ahead.take(ciphertext, this.#parts.get(ciphertext), () => this.#decryptAndKeep(ciphertext, transaction, opening));

    return {
      ...isolate(repository, alone),
      decryptMessage: (message) =>
        inTurn(message.ciphertext, (work) => alone(message.jid, work), {
          store,
          decrypt: () => repository.decryptMessage(message),
          learn,
        }),
      decryptGroupMessage: (message) =>
        inTurn(message.msg, (work) => alone(message.group, work), {
          store,
          decrypt: () => repository.decryptGroupMessage(message),
        }),
      async processSenderKeyDistributionMessage(message) {
        if (!handled.delete(nameOf(message.item))) await repository.processSenderKeyDistributionMessage(message);
      },
    };
  }

  /** Decrypts and keeps, or finds the plaintext of a stanza that was delivered before, or notes that it has none. */
  async #decryptAndKeep(ciphertext: Uint8Array, transaction: Transaction, opening: Opening): Promise<Uint8Array> {
    const { journal } = this.#deps;
    const part = this.#parts.get(ciphertext);
    if (!part) return isTooLong(ciphertext) ? NOTHING : await transaction(opening.decrypt);
    try {
      const again = part.isTooLong && await journal.recall(part);
      if (again) return again;
      return await this.#open(part, transaction, opening);
    } catch (error) {
      try {
        if (error instanceof StoreError) throw error;
        const again = await journal.recall(part);
        if (again) return again;
      } catch (failure) {
        if (failure instanceof StoreError) this.#deps.broken(failure);
        throw error;
      }
      await this.#noteUndecrypted(part);
      throw error;
    }
  }

  /**
   * Decrypts and writes the plaintext to the journal in one transaction. What is too long is not decrypted, which would
   * hold the thread: Signal derives its key when the next message comes, and keeps it.
   */
  async #open(part: StanzaPart, transaction: Transaction, { store, decrypt, learn }: Opening): Promise<Uint8Array> {
    const { journal } = this.#deps;
    let entry: JournalEntry | undefined;
    await transaction(async () => {
      const plaintext = part.isTooLong ? NOTHING : await decrypt();
      await learn?.(plaintext, part.attrs);
      entry = journal.entryOf(part, plaintext);
      await journal.keep(entry, store);
      return plaintext;
    });
    this.#deps.decrypted(entry!);
    return forLibrary(entry!.plaintext, part.attrs);
  }

  async #noteUndecrypted(part: Omit<UndecryptedEntry, "since">): Promise<void> {
    try {
      this.#deps.undecrypted(await this.#deps.journal.keepUndecrypted(part));
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#deps.broken(error);
    }
  }
}

const isTooLong = (ciphertext: Uint8Array) => ciphertext.length > LONGEST_CIPHERTEXT;

/**
 * Returns what the library gets to read. Not what has too many members for it, nor what the owner's phone resends: the
 * inbox takes that, and the library would take it again, in a time that grows with the square of the answer's length.
 */
function forLibrary(plaintext: Uint8Array, { category }: StanzaPart["attrs"]): Uint8Array {
  if (category !== "peer" && plaintext.length < MOST_READS) return plaintext;
  // Of a malformed one, the library reports what is wrong with it.
  return unlessMalformed(() => {
    const message = unlessTooMany(() => proto.Message.decode(bounded(unpadRandomMax16(plaintext))));
    return !message || message.protocolMessage?.peerDataOperationRequestResponseMessage ? NOTHING : plaintext;
  }, plaintext);
}

function nameOf({ groupId, axolotlSenderKeyDistributionMessage: key }: proto.Message.ISenderKeyDistributionMessage) {
  return `${groupId} ${Buffer.from(key ?? []).toString("base64")}`;
}

/** The ciphertext types that the library decrypts. */
const CIPHERS = new Set<string | undefined>(["msg", "pkmsg", "skmsg"]);

/**
 * Whether the stanza has no content that the library can decrypt: the network withholds it (a view-once message, for
 * example), or it uses another cipher (an assistant's answer). The phone may send the message later.
 */
function isUnreadable(content: BinaryNode[]): boolean {
  const isReadable = ({ tag, attrs, content }: BinaryNode) =>
    tag === "enc" && CIPHERS.has(attrs.type) && content instanceof Uint8Array;
  return content.some(({ tag }) => tag === "unavailable" || tag === "enc") && !content.some(isReadable);
}

/** What the network does not send to linked devices, as it names that; the library asks the phone for none of these. */
const WITHHELD = ["view_once", "hosted", "bot"] as const;

/** Returns why the content is withheld; undefined if the phone may send it later. */
function withheldIn(content: BinaryNode[]): string | undefined {
  const child = content.find(({ tag }) => tag === "unavailable");
  const why = WITHHELD.find((word) => child?.attrs.type?.startsWith(word) || child?.attrs[word] === "true");
  // The word by which the library, too, knows that there is nothing to ask for.
  if (why) child!.attrs.type = `${why}_unavailable_fanout`;
  return why;
}

/**
 * Whether messages from this address are read. Status posts and channel messages are not messages to the line. The
 * library ignores the owner's chat with an assistant.
 */
function isKept(from: string | undefined): boolean {
  return from !== undefined && !isJidStatusBroadcast(from) && !isJidNewsletter(from) && !isJidMetaAI(from);
}
