/** The rows of erasures: those that are under way name the person, those that are done do not. */
import { type Key, key, prefix } from "../store/kv.ts";
import type { Person } from "../whatsapp/person.ts";

export interface ErasureRecord {
  id: string;
  accountId: string;
  /** The key that asked; null: the account's own, or the panel. */
  keyId: string | null;
  askedAt: number;
  /** Null while it is under way. */
  doneAt: number | null;
  /** How much of the person is gone: emptied messages, and those without the name now. */
  messages: number;
  events: number;
  files: number;
}

/** Where an erasure stands; each place is left in the commit that did its piece. */
export type Place =
  | { step: "waiting" }
  | { step: "messages"; after: number; upTo: number }
  | { step: "index"; upTo: number }
  | { step: "events"; after: string | null }
  | { step: "chats" | "network"; lineId: string | null; at: Key | null };

export interface ErasureRow extends ErasureRecord {
  person: Person;
  place: Place;
  /** Something was met that could not go yet: begin again at the end. */
  again: boolean;
}

export const erasureKeys = {
  /** One that is under way, by the number or `@lid` that was asked for. */
  erasure: (accountId: string, name: string) => key<ErasureRow>("erasure", accountId, name),
  erasuresOf: (accountId: string) => prefix<ErasureRow>("erasure", accountId),
  erasures: () => prefix<ErasureRow>("erasure"),
  /** What the account had erased; stays. */
  done: (accountId: string, erasureId: string) => key<ErasureRecord>("erasure_done", accountId, erasureId),
  doneOf: (accountId: string) => prefix<ErasureRecord>("erasure_done", accountId),
};
