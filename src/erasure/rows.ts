/** The rows of erasures: those under way name the person, completed ones do not. */
import { type Key, key, prefix } from "../store/kv.ts";
import type { Person } from "../whatsapp/person.ts";

export interface ErasureRecord {
  id: string;
  accountId: string;
  /** The key that made the request; null: the account's own key, or the panel. */
  keyId: string | null;
  askedAt: number;
  /** Unix ms; null while the erasure is under way. */
  doneAt: number | null;
  /** How much was erased: messages whose contents or names were removed. */
  messages: number;
  events: number;
  files: number;
}

/** The progress of an erasure; each step's commit advances it. */
export type Place =
  | { step: "waiting" }
  | { step: "messages"; after: number; upTo: number }
  | { step: "index"; upTo: number }
  | { step: "verifications"; from: Key | null }
  | { step: "events"; after: string | null }
  | { step: "chats" | "said" | "network"; lineId: string | null; at: Key | null };

export interface ErasureRow extends ErasureRecord {
  person: Person;
  place: Place;
  /** Whether something could not be removed yet: start over at the end. */
  again: boolean;
}

export const erasureKeys = {
  /** An erasure under way, by the requested number or `@lid`. */
  erasure: (accountId: string, name: string) => key<ErasureRow>("erasure", accountId, name),
  erasuresOf: (accountId: string) => prefix<ErasureRow>("erasure", accountId),
  erasures: () => prefix<ErasureRow>("erasure"),
  /** A completed erasure of the account; kept. */
  done: (accountId: string, erasureId: string) => key<ErasureRecord>("erasure_done", accountId, erasureId),
  doneOf: (accountId: string) => prefix<ErasureRecord>("erasure_done", accountId),
};
