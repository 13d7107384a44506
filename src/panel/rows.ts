/** The rows of the panel: people, where they are signed in, one-time links, what they did, and counts for charts. */
import { key, prefix } from "../store/kv.ts";

interface Passkey {
  id: string;
  name: string;
  publicKey: Uint8Array<ArrayBuffer>;
  /** Grows with each use, where the authenticator counts. */
  counter: number;
  transports: string[];
  createdAt: number;
  lastUsedAt: number | null;
}

export interface Person {
  id: string;
  /** Lower case. */
  login: string;
  /** Null: an operator, who may act for every account. */
  accountId: string | null;
  /** Null: passkeys alone. See password.ts. */
  passwordHash: string | null;
  /** The sealed secret of one-time codes; they are asked for once `confirmed`. */
  totp: { secret: Uint8Array<ArrayBuffer>; confirmed: boolean; lastStep: number } | null;
  passkeys: Passkey[];
  createdAt: number;
  lastSignInAt: number | null;
  /** From where they have signed in (`subscriberOf`), the latest first; missing until the next time in rows of older versions. */
  addresses?: string[];
}

/** A browser that is signed in. */
export interface SignIn {
  personId: string;
  address: string;
  userAgent: string;
  createdAt: number;
  seenAt: number;
}

/** What a link is for. */
export type Purpose =
  | { kind: "operator" }
  | { kind: "member"; accountId: string }
  | { kind: "line"; accountId: string; sessionId: string };

/** `by`: the person who made it; missing for one of a command. */
export type Invitation = Purpose & { by?: string; createdAt: number; expiresAt: number };

export interface AuditEntry {
  id: string;
  at: number;
  /** Null: nobody had signed in yet. */
  personId: string | null;
  login: string | null;
  address: string;
  /** The account that it concerns; null: the gateway. */
  accountId: string | null;
  /** `signed_in`, `key_shown`, or for a call of the API its method and path. */
  action: string;
}

export interface DayCounts {
  sent: number;
  failed: number;
  received: number;
}

export const panelKeys = {
  person: (personId: string) => key<Person>("panel_person", personId),
  people: () => prefix<Person>("panel_person"),
  /** The id of the person with this login (lower case). */
  login: (login: string) => key<string>("panel_login", login),
  /** The id of the person with this passkey. */
  passkey: (credentialId: string) => key<string>("panel_passkey", credentialId),
  /** A browser that is signed in, by the SHA-256 (hex) of its token. */
  signIn: (personId: string, tokenHash: string) => key<SignIn>("panel_sign_in", personId, tokenHash),
  signInsOf: (personId: string) => prefix<SignIn>("panel_sign_in", personId),
  signIns: () => prefix<SignIn>("panel_sign_in"),
  /** A one-time link, by the SHA-256 (hex) of its token. */
  link: (tokenHash: string) => key<Invitation>("panel_link", tokenHash),
  links: () => prefix<Invitation>("panel_link"),
  /** Until when a passkey's challenge that was answered would be good, by the SHA-256 (hex) of it. */
  answered: (challengeHash: string) => key<number>("panel_answered", challengeHash),
  allAnswered: () => prefix<number>("panel_answered"),
  /** What somebody did; ids sort by time. */
  audit: (entryId: string) => key<AuditEntry>("panel_audit", entryId),
  audits: () => prefix<AuditEntry>("panel_audit"),
  /** What was sent, failed and received on a UTC day (`YYYY-MM-DD`). */
  usage: (accountId: string, day: string) => key<DayCounts>("panel_usage", accountId, day),
  usageOf: (accountId: string) => prefix<DayCounts>("panel_usage", accountId),
  /** The last event that is counted. */
  usageCursor: (accountId: string) => key<string>("panel_usage_cursor", accountId),
};
