/**
 * The journal: no incoming message is lost by a crash (promise 4).
 *
 * The library tells the network "received" before anybody was handed the message, and a Signal message decrypts only
 * once. So the plaintext is written in the very transaction that stores the advanced ratchet, before the library sees it
 * (`decryption.ts`). A row goes when its message was handed over; what is left is handed over after the next login. A
 * stanza that the network delivers again, its ratchet spent, is answered from the journal, so it never becomes a retry
 * loop. See docs/decisions/0007-message-journal.md.
 */
import type { SignalKeyStore } from "@whiskeysockets/baileys";
import type { Clock } from "../../../runtime.ts";
import { Change } from "../../../store/kv.ts";
import type { Incoming } from "../../incoming.ts";
import type { AuthState, KeyData } from "../auth_state.ts";
import { expireAfter } from "../expiry.ts";
import { type LineRows, networkKeys } from "../rows.ts";
import { changeOriginal, findSealed, keepOriginal, type SealedOriginal } from "./originals.ts";

/** A part of a message stanza; most stanzas have one. */
export interface StanzaPart {
  /** `stanza` and a digest of the ciphertext: the row's id. The sender's second attempt is another part. */
  part: string;
  /** The same for each delivery of the stanza, and for the sender's second attempt. */
  stanza: string;
  attrs: Record<string, string>;
}

/** A decrypted part of a message stanza, not yet handed over. */
export interface JournalEntry extends StanzaPart {
  /** Order of decryption. */
  sequence: number;
  /** As decrypted: an encoded message with its padding. */
  plaintext: Uint8Array;
}

/** A stanza that did not decrypt; the sender was asked for it again. */
export interface UndecryptedEntry {
  stanza: string;
  since: number;
  attrs: Record<string, string>;
}

/** A message to be kept, and for an edit what was kept of the message that it is about. */
type Kept = Incoming & { edited?: SealedOriginal };

/** Oldest first. */
export interface Leftovers {
  decrypted: JournalEntry[];
  undecrypted: UndecryptedEntry[];
}

/** How long a stanza may be delivered again: as long as the network keeps messages for a device that is away. */
export const SEEN_DAYS = 30;
/** An encoded message without content, padded: what a stanza that was handed over before decrypts to. */
const NOTHING = Uint8Array.of(1);

/** Every method throws StoreError. */
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

  /** A part that was just decrypted. */
  entryOf(part: StanzaPart, plaintext: Uint8Array): JournalEntry {
    this.#sequence = Math.max(this.#sequence + 1, this.#clock.now() * 1000);
    return { ...part, sequence: this.#sequence, plaintext };
  }

  /** Adds its row to the transaction that `store` is in. */
  keep(entry: JournalEntry, store: Pick<SignalKeyStore, "set">): ReturnType<SignalKeyStore["set"]> {
    // The library types only its own rows; its transaction carries any.
    const rows: KeyData = { journal: { [entry.part]: entry } };
    return store.set(rows);
  }

  async keepUndecrypted({ stanza, attrs }: Pick<StanzaPart, "stanza" | "attrs">): Promise<UndecryptedEntry> {
    const entry = { stanza, attrs, since: this.#clock.now() };
    await this.#auth.keys.set({ undecryptable: { [stanza]: entry } });
    return entry;
  }

  /** What the part decrypted to before, if it is delivered again. */
  async recall(part: string): Promise<Uint8Array | null> {
    const kept = await this.#auth.get<JournalEntry>("journal", part);
    if (kept) return kept.plaintext;
    const { kv, lineId } = this.#line;
    return (await kv.get(networkKeys.waSeen(lineId, part))).value === null ? null : NOTHING;
  }

  /** What earlier connections left. */
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
   * Which of the part's messages is to be kept as it came in. Not what the owner's phone sends once more, in an envelope of
   * its own and some at a time; and none under the id of another: senders choose the ids of their messages.
   */
  async originalOf({ attrs }: JournalEntry, [message]: readonly Incoming[]): Promise<Kept | null> {
    if (!message || message.networkId !== attrs.id) return null;
    if (message.change?.kind === "edited") {
      const edited = await findSealed(this.#line, message.change.target);
      return edited?.fromMe === message.fromMe ? { ...message, edited } : null;
    }
    const known = await findSealed(this.#line, message.networkId);
    const isAnother = known &&
      (known.chat !== message.chat || known.participant !== message.participant || known.fromMe !== message.fromMe);
    return isAnother ? null : message;
  }

  /**
   * Adds that the part was handed over, and the message to keep of it, or what it makes of one that is kept. Nothing once the connection has ended: a receiver
   * that was slow must not write into a link that may be gone, and the next login gives it the message again.
   */
  settle(change: Change, entry: JournalEntry, original: Kept | null): void {
    if (this.#auth.isClosed) return;
    const { seal, lineId } = this.#line;
    const now = this.#clock.now();
    const seen = networkKeys.waSeen(lineId, entry.part);
    expireAfter(change, { row: seen, lineId, kind: "seen", id: entry.part, days: SEEN_DAYS, now })
      .delete(networkKeys.waKey(lineId, "journal", entry.part))
      .set(seen, now);
    if (original?.change) {
      changeOriginal(change, original.change, { seal, lineId, edited: original.edited ?? null });
    } else if (original) keepOriginal(change, original, { seal, lineId, plaintext: entry.plaintext, now });
  }

  /** In a commit of its own, that the part holds nothing new. */
  async done(entry: JournalEntry): Promise<void> {
    const change = new Change();
    this.settle(change, entry, null);
    await this.#auth.commit(change);
  }

  /** The loss was reported, or the message came after all. */
  async doneUndecrypted({ stanza }: UndecryptedEntry): Promise<void> {
    await this.#auth.commit(new Change().delete(networkKeys.waKey(this.#line.lineId, "undecryptable", stanza)));
  }
}
