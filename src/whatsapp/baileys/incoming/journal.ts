/**
 * The journal: no incoming message is lost by a crash (promise 4).
 *
 * The library tells the network "received" before anybody was handed the message, and a Signal message decrypts only
 * once. So the plaintext is written in the very transaction that stores the advanced ratchet, before the library sees
 * it. A row goes when its message was handed over; what is left is handed over after the next login. A stanza that the
 * network delivers again, its ratchet spent, is answered from the journal, so it never becomes a retry loop.
 * See docs/decisions/0007-message-journal.md.
 */
import { detached } from "../../../base/detached.ts";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type {
  BinaryNode,
  SignalAuthState,
  SignalKeyStoreWithTransaction,
  SignalRepositoryWithLIDStore,
  SocketConfig,
} from "@whiskeysockets/baileys";
import {
  DEFAULT_CONNECTION_CONFIG,
  isJidNewsletter,
  isJidStatusBroadcast,
  proto,
  unpadRandomMax16,
} from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import { networkKeys } from "../rows.ts";
import { Change, type Kv, StoreError } from "../../../store/kv.ts";
import type { Seal } from "../../../store/seal.ts";
import type { Incoming } from "../../incoming.ts";
import type { AuthState, KeyData } from "../auth_state.ts";
import { expireAfter } from "../expiry.ts";
import { keepOriginal } from "./originals.ts";
import { isolate, makeAlone } from "../repairs/isolation.ts";

/** A decrypted part of a message stanza, not yet handed over. Most stanzas have one part. */
export interface JournalEntry {
  /** `stanza` and a digest of the ciphertext: the row's id. The sender's second attempt is another part. */
  part: string;
  stanza: string;
  /** Order of decryption. */
  sequence: number;
  attrs: Record<string, string>;
  /** As decrypted: an encoded message with its padding. */
  plaintext: Uint8Array;
}

/** A stanza that did not decrypt; the sender was asked for it again. */
export interface UndecryptedEntry {
  stanza: string;
  since: number;
  attrs: Record<string, string>;
}

interface JournalEvents {
  decrypted(entry: JournalEntry): void;
  undecrypted(entry: UndecryptedEntry): void;
  /** A row could not be written: the connection must end before the network is told anything about the message. */
  broken(error: StoreError): void;
}

export interface Journal {
  /** Remembers which stanza a ciphertext belongs to. To be called with every message stanza, before the library. */
  watch(stanza: BinaryNode): void;
  readonly makeSignalRepository: SocketConfig["makeSignalRepository"];
  /** Rows that an earlier connection left, oldest first. */
  leftovers(): Promise<{ decrypted: JournalEntry[]; undecrypted: UndecryptedEntry[] }>;
  /** Adds that the part was handed over, as these messages (none where it holds nothing to hand over). */
  settle(change: Change, entry: JournalEntry, messages: readonly Incoming[]): void;
  /** The same in a commit of its own. */
  done(entry: JournalEntry, messages?: readonly Incoming[]): Promise<void>;
  /** The loss was reported, or the message came after all. */
  doneUndecrypted(entry: UndecryptedEntry): Promise<void>;
}

/** How long a stanza may be delivered again: as long as the network keeps messages for a device that is away. */
export const SEEN_DAYS = 30;
/** An encoded message without content, padded: what a stanza that was handed over before decrypts to. */
const NOTHING = Uint8Array.of(1);

interface JournalOptions {
  kv: Kv;
  seal: Seal;
  lineId: string;
  auth: AuthState;
  runtime: Pick<Runtime, "clock" | "log">;
}

export function makeJournal(options: JournalOptions, events: JournalEvents): Journal {
  const { kv, seal, lineId, auth, runtime } = options;
  const origins = new WeakMap<Uint8Array, Omit<JournalEntry, "plaintext" | "sequence">>();
  let sequence = 0;

  const nextSequence = () => sequence = Math.max(sequence + 1, runtime.clock.now() * 1000);

  /** What the stanza decrypted to before, if it is delivered again. */
  async function recall(part: string): Promise<Uint8Array | null> {
    const kept = await auth.get<JournalEntry>("journal", part);
    if (kept) return kept.plaintext;
    return (await kv.get(networkKeys.waSeen(lineId, part))).value === null ? null : NOTHING;
  }

  /** Decrypts and keeps the plaintext in one transaction. */
  async function decryptAndKeep(
    ciphertext: Uint8Array,
    transaction: (work: () => Promise<Uint8Array>) => Promise<Uint8Array>,
    context: {
      store: SignalKeyStoreWithTransaction;
      decrypt: () => Promise<Uint8Array>;
      learn?: (plaintext: Uint8Array, author: string) => Promise<void>;
    },
  ): Promise<Uint8Array> {
    const origin = origins.get(ciphertext);
    if (!origin) return await transaction(context.decrypt);
    let entry: JournalEntry | undefined;
    try {
      const plaintext = await transaction(async () => {
        const plaintext = await context.decrypt();
        await context.learn?.(plaintext, origin.attrs.participant ?? origin.attrs.from!);
        entry = { ...origin, sequence: nextSequence(), plaintext };
        // The library types only its own rows; its transaction carries any.
        const rows: KeyData = { journal: { [origin.part]: entry } };
        await context.store.set(rows);
        return plaintext;
      });
      events.decrypted(entry!);
      return plaintext;
    } catch (error) {
      try {
        if (error instanceof StoreError) throw error;
        const again = await recall(origin.part);
        if (again) return again;
        await keepUndecrypted(origin);
      } catch (failure) {
        if (failure instanceof StoreError) events.broken(failure);
      }
      throw error;
    }
  }

  async function keepUndecrypted({ stanza, attrs }: { stanza: string; attrs: Record<string, string> }): Promise<void> {
    const entry = { stanza, attrs, since: runtime.clock.now() };
    const rows: KeyData = { undecryptable: { [stanza]: entry } };
    await auth.keys.set(rows);
    events.undecrypted(entry);
  }

  function makeSignalRepository(
    state: SignalAuthState,
    logger: SocketConfig["logger"],
    pnToLid?: Parameters<SocketConfig["makeSignalRepository"]>[2],
  ): SignalRepositoryWithLIDStore {
    const repository = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(state, logger, pnToLid);
    // The library hands over its store with transactions, whatever the type says.
    const store = state.keys as SignalKeyStoreWithTransaction;
    const alone = makeAlone(store, repository.lidMapping, auth.refusedReads);
    /** Sender keys that were learned with their message, until the library comes to it. */
    const learned = new Set<string>();

    /**
     * The library learns the sender key of a group member after the message that brings it has spent its own key, and
     * goes on when that fails: a connection that ended in between lost the key, and all that he wrote to the group had
     * to be asked for again, each message by itself.
     */
    async function learn(plaintext: Uint8Array, authorJid: string): Promise<void> {
      try {
        const message = proto.Message.decode(unpadRandomMax16(plaintext));
        const item = (message.deviceSentMessage?.message ?? message).senderKeyDistributionMessage;
        if (!item?.groupId) return;
        await repository.processSenderKeyDistributionMessage({ item, authorJid });
        learned.add(nameOf(item));
      } catch (error) {
        // What makes no sense is no reason to lose what came with it.
        if (error instanceof StoreError) throw error;
      }
    }

    return {
      ...isolate(repository, alone),
      decryptMessage: (message) =>
        decryptAndKeep(message.ciphertext, (work) => alone(message.jid, work), {
          store,
          decrypt: () => repository.decryptMessage(message),
          learn,
        }),
      decryptGroupMessage: (message) =>
        decryptAndKeep(message.msg, (work) => alone(message.group, work), {
          store,
          decrypt: () => repository.decryptGroupMessage(message),
        }),
      async processSenderKeyDistributionMessage(message) {
        if (!learned.delete(nameOf(message.item))) await repository.processSenderKeyDistributionMessage(message);
      },
    };
  }

  function settle(change: Change, entry: JournalEntry, messages: readonly Incoming[]): void {
    const now = runtime.clock.now();
    const seen = networkKeys.waSeen(lineId, entry.part);
    expireAfter(change, { row: seen, lineId, kind: "seen", id: entry.part, days: SEEN_DAYS, now })
      .delete(networkKeys.waKey(lineId, "journal", entry.part))
      .set(seen, now);
    const [message] = messages;
    // What the owner's phone sends once more comes in an envelope of its own, some at a time.
    if (message && message.networkId === entry.attrs.id) {
      keepOriginal(change, message, { seal, lineId, plaintext: entry.plaintext, now });
    }
  }

  return {
    watch(node) {
      if (!isKept(node.attrs.from) || !Array.isArray(node.content)) return;
      const stanza = stanzaId(node.attrs);
      if (isWithheld(node.content)) {
        void detached(keepUndecrypted({ stanza, attrs: { ...node.attrs } }), (failure) => {
          runtime.log.warn(failure, "a message that the network withheld was not noted");
        });
      }
      for (const { tag, content } of node.content) {
        if (tag !== "enc" || !(content instanceof Uint8Array)) continue;
        const digest = createHash("sha256").update(content).digest("base64url").slice(0, 16);
        origins.set(content, { part: `${stanza}|${digest}`, stanza, attrs: { ...node.attrs } });
      }
    },

    makeSignalRepository,

    async leftovers() {
      const [decrypted, undecrypted] = await Promise.all([
        auth.list<JournalEntry>("journal"),
        auth.list<UndecryptedEntry>("undecryptable"),
      ]);
      return {
        decrypted: [...decrypted.values()].sort((a, b) => a.sequence - b.sequence),
        undecrypted: [...undecrypted.values()].sort((a, b) => a.since - b.since),
      };
    },

    settle,

    async done(entry, messages = []) {
      const change = new Change();
      settle(change, entry, messages);
      await kv.commit(change);
    },

    async doneUndecrypted(entry) {
      await kv.commit(new Change().delete(networkKeys.waKey(lineId, "undecryptable", entry.stanza)));
    },
  };
}

function nameOf({ groupId, axolotlSenderKeyDistributionMessage: key }: proto.Message.ISenderKeyDistributionMessage) {
  return `${groupId} ${Buffer.from(key ?? []).toString("base64")}`;
}

/** Names a message stanza: the same for each delivery of it, and for the sender's second attempt. */
function stanzaId(attrs: Record<string, string>): string {
  return [attrs.from, attrs.participant ?? "", attrs.id].join("|");
}

/** The network names a message without its content, as one to be seen once on the phone: the phone may send it on. */
function isWithheld(content: BinaryNode[]): boolean {
  return content.some(({ tag }) => tag === "unavailable") && !content.some(({ tag }) => tag === "enc");
}

/** Status posts and channels are no messages to the line. */
function isKept(from: string | undefined): boolean {
  return from !== undefined && !isJidStatusBroadcast(from) && !isJidNewsletter(from);
}
