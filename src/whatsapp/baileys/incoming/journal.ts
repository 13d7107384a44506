/**
 * The journal: no incoming message is lost in a crash (promise 4).
 *
 * The library tells the network "received" before the message is handed to anyone, and a Signal message can be
 * decrypted only once. So the plaintext is written in the same transaction that stores the advanced ratchet, before the
 * library sees it (`decryption.ts`). A row is deleted when its message has been handed over; the remaining ones are
 * handed over after the next login. A stanza that the network delivers again has spent its ratchet step; it is answered
 * from the journal, so that it never becomes a retry loop. See docs/decisions/0007-message-journal.md.
 */
import type { SignalKeyStore } from "@whiskeysockets/baileys";
import type { Clock } from "../../../runtime.ts";
import { Change } from "../../../store/kv.ts";
import type { Settle } from "../../connection.ts";
import type { Incoming } from "../../incoming.ts";
import { withoutDevice } from "../../person.ts";
import { type AuthState, encode, type KeyData } from "../auth_state.ts";
import { expireAfter, type LineRows, networkKeys, plainBytes } from "../rows.ts";
import { changeOriginal, findSealed, keepOriginal, type SealedOriginal } from "../stored_messages.ts";

/** A part of a message stanza. Most stanzas have one. */
export interface StanzaPart {
  /** `stanza` and a digest of the ciphertext: the row's id. The sender's second attempt is a different part. */
  part: string;
  /** The same for each delivery of the stanza and for the sender's second attempt. */
  stanza: string;
  attrs: Record<string, string>;
  /** Longer than any app's, and not read: the plaintext is `NOTHING`. */
  isTooLong?: true;
}

/** A decrypted part of a message stanza that has not been handed over. */
export interface JournalEntry extends StanzaPart {
  /** Sorts by order of decryption. */
  sequence: number;
  /** The decrypted bytes: an encoded message with its padding. */
  plaintext: Uint8Array;
  /** How often it was begun to hand it over, as far as that was counted. */
  attempts?: number;
}

/** An entry during which the process ended this often is set aside. */
export const MOST_ATTEMPTS = 2;

/** A stanza that did not decrypt. Its sender was asked to send it again. */
export interface UndecryptedEntry {
  stanza: string;
  since: number;
  attrs: Record<string, string>;
  /** Why the network withholds it from linked devices: `view_once`, `hosted` or `bot`. Absent if it may come again. */
  withheld?: string;
}

/** A message to be stored, or that changes the stored one, and that one as it is now: undefined if taken for absent. */
interface Kept {
  message: Incoming;
  before: SealedOriginal | null | undefined;
}

/** The rows left in the journal, oldest first. */
export interface Leftovers {
  decrypted: JournalEntry[];
  undecrypted: UndecryptedEntry[];
}

/** How long a stanza may be delivered again: the network keeps messages for an offline device this long. */
export const SEEN_DAYS = 30;
/** An encoded message without content, padded: the plaintext given for a stanza that was handed over before. */
export const NOTHING = Uint8Array.of(1);

/** No app's message has more than a megabyte. A frame holds 16 MB, which would take a second to write. */
const LONGEST = 1.25 * 1024 * 1024;
/** With what Signal adds: a header, and before the first answer the sender's keys. */
export const LONGEST_CIPHERTEXT = LONGEST + 1024;

/** Returns the chat that a stanza belongs to, without device. */
export function chatOf({ attrs }: Pick<StanzaPart, "attrs">): string {
  return withoutDevice(attrs.recipient ?? attrs.from ?? "");
}

/** The library types only its own rows, but its transaction carries any. */
function rowsOf({ plaintext, ...entry }: JournalEntry): KeyData {
  return { journal: { [entry.part]: { ...entry, plaintext: plainBytes(plaintext) } } };
}

/** The journal of a line. If the store fails, its methods reject with StoreError. */
export class Journal {
  readonly #line: LineRows;
  readonly #auth: AuthState;
  readonly #clock: Clock;
  #sequence = 0;

  constructor(line: LineRows, auth: AuthState, clock: Clock) {
    this.#line = line;
    this.#auth = auth;
    this.#clock = clock;
  }

  /** Makes the entry of a part that was just decrypted. */
  entryOf(part: StanzaPart, plaintext: Uint8Array): JournalEntry {
    this.#sequence = Math.max(this.#sequence + 1, this.#clock.now() * 1000);
    const entry = { ...part, sequence: this.#sequence };
    return plaintext.length > LONGEST ? { ...entry, plaintext: NOTHING, isTooLong: true } : { ...entry, plaintext };
  }

  /** Adds the entry's row to the transaction that is open on `store`. */
  keep(entry: JournalEntry, store: Pick<SignalKeyStore, "set">): ReturnType<SignalKeyStore["set"]> {
    return store.set(rowsOf(entry));
  }

  async keepUndecrypted(
    { stanza, attrs, withheld }: Omit<UndecryptedEntry, "since">,
  ): Promise<UndecryptedEntry> {
    const entry = { stanza, attrs, since: this.#clock.now(), ...(withheld && { withheld }) };
    await this.#auth.keys.set({ undecryptable: { [stanza]: entry } });
    return entry;
  }

  /** Returns the plaintext of a part that is delivered again; null if the part is new. */
  async recall({ part, attrs }: StanzaPart): Promise<Uint8Array | null> {
    const kept = await this.#auth.get<JournalEntry>("journal", part);
    if (kept) return kept.plaintext;
    const { kv, lineId } = this.#line;
    const isSeen = (await kv.get(networkKeys.waSeen(lineId, part))).value !== null ||
      (await findSealed(this.#line, attrs.id ?? ""))?.part === part;
    return isSeen ? NOTHING : null;
  }

  /** Returns the rows left by earlier connections. */
  async leftovers(): Promise<Leftovers> {
    const [decrypted, undecrypted] = await Promise.all([
      this.#auth.list<JournalEntry>("journal"),
      this.#auth.list<UndecryptedEntry>("undecryptable"),
    ]);
    return {
      decrypted: [...decrypted.values()].sort((a, b) => a.sequence - b.sequence),
      undecrypted: [...undecrypted.values()].sort((a, b) => a.since - b.since),
    };
  }

  /**
   * Returns what settles the entry of these messages, in a change that may have to be built several times. Most messages
   * are new: what is stored under their id is read only if the commit finds something there.
   */
  settling(entry: JournalEntry, messages: readonly Incoming[]): Settle {
    let mayAssume = messages[0]?.change === null;
    return async (change) => {
      const original = mayAssume ? assumed(entry, messages) : await this.originalOf(entry, messages);
      mayAssume = false;
      this.settle(change, entry, original);
    };
  }

  /**
   * Returns the message of the part that should be stored as an original or that changes one. Null for messages that
   * the owner's phone resends, several at a time, in an envelope of its own. Null also if the id is that of a message
   * in another chat, because senders choose their ids.
   */
  async originalOf(entry: JournalEntry, messages: readonly Incoming[]): Promise<Kept | null> {
    const kept = assumed(entry, messages);
    if (!kept) return null;
    const { message } = kept;
    const { change } = message;
    if (change?.kind === "edited" || change?.kind === "deleted") {
      const before = await findSealed(this.#line, change.target);
      if (before === null || !isInChatOf(message, before)) return null;
      return change.kind === "deleted" || before.fromMe === message.fromMe ? { message, before } : null;
    }
    const before = await findSealed(this.#line, message.networkId);
    const isAnother = before &&
      (before.chat !== message.chat || before.participant !== message.participant || before.fromMe !== message.fromMe);
    return isAnother ? null : { message, before };
  }

  /**
   * Adds to the change that the part was handed over, and stores or changes an original. Adds nothing once the
   * connection has ended: a slow receiver must not write into a link that may be gone, and gets the message again at
   * the next login.
   */
  settle(change: Change, entry: JournalEntry, original: Kept | null): void {
    if (this.#auth.isClosed) return;
    const { seal, lineId } = this.#line;
    const { part, plaintext } = entry;
    const { message, before } = original ?? {};
    change.delete(networkKeys.waKey(lineId, "journal", part));
    // An original names its part, and needs no other row for it.
    const isNamed = message?.change === null && !before;
    if (!isNamed) this.#markSeen(change, part);
    if (message?.change) {
      if (message.change.kind === "deleted" && before?.part) this.#markSeen(change, before.part);
      changeOriginal(change, message.change, { seal, lineId, edited: before ?? null });
    } else if (message) {
      if (before === undefined) {
        change.check({ key: networkKeys.waReceived(lineId, message.networkId), version: null });
      }
      const now = this.#clock.now();
      keepOriginal(change, message, { seal, lineId, plaintext, now, part: isNamed ? part : before?.part });
    }
  }

  #markSeen(change: Change, part: string): void {
    const now = this.#clock.now();
    const row = networkKeys.waSeen(this.#line.lineId, part);
    expireAfter(change, row, { days: SEEN_DAYS, now }).set(row, now);
  }

  /** Sets the entry aside in a commit of its own. */
  async doneAside(entry: JournalEntry): Promise<void> {
    const change = new Change();
    this.setAside(change, entry);
    await this.#auth.commit(change);
  }

  /** Records in a separate commit that the part holds nothing new. */
  async done(entry: JournalEntry): Promise<void> {
    const change = new Change();
    this.settle(change, entry, null);
    await this.#auth.commit(change);
  }

  /** Removes the entry: the loss was reported, or the message arrived after all. The phone may resend it later. */
  async doneUndecrypted({ stanza, attrs }: UndecryptedEntry): Promise<void> {
    const { lineId } = this.#line;
    const now = this.#clock.now();
    const change = new Change().delete(networkKeys.waKey(lineId, "undecryptable", stanza));
    const row = networkKeys.waAsked(lineId, attrs.id ?? "");
    expireAfter(change, row, { days: SEEN_DAYS, now }).set(row, now);
    await this.#auth.commit(change);
  }

  /** Whether a message with this id did not decrypt within the days in which its sender or the phone may resend it. */
  async wasUndecrypted(networkId: string): Promise<boolean> {
    const { kv, lineId } = this.#line;
    return (await kv.get(networkKeys.waAsked(lineId, networkId))).value !== null;
  }

  /**
   * Counts, on disk, an attempt to hand the entry over, so that an entry which ends the process does so twice at most.
   * Throws StoreError.
   */
  async count(entry: JournalEntry, attempts: number): Promise<void> {
    entry.attempts = attempts;
    await this.#auth.keys.set(rowsOf(entry));
  }

  /** Adds to the change that the entry is kept aside, for a report of the fault, and never handed over. */
  setAside(change: Change, entry: JournalEntry): void {
    const { seal, lineId } = this.#line;
    const row = networkKeys.waAside(lineId, entry.part);
    expireAfter(change, row, { days: SEEN_DAYS, now: this.#clock.now() }).set(row, seal.seal(encode(entry)));
    this.settle(change, entry, null);
  }
}

/** Returns the message of the part that is stored or changes a stored one, taken for new. */
function assumed({ attrs }: JournalEntry, [message]: readonly Incoming[]): Kept | null {
  if (!message || message.networkId !== attrs.id) return null;
  // Nothing refers to a reaction, nor to what was lost.
  if (message.type === "reactionMessage" || message.undecryptable) return null;
  return { message, before: undefined };
}

/**
 * Whether a change comes from the chat of the original. A person's chat may have two names, a number and a LID; only
 * the owner's own devices are trusted with changes from elsewhere.
 */
function isInChatOf(change: Incoming, original: SealedOriginal): boolean {
  if (change.fromMe || change.chat === original.chat) return true;
  const isChatOfTwo = change.participant === null && original.participant === null && !original.fromMe;
  return isChatOfTwo && original.number !== null && original.number === change.number;
}
