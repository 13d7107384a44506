/** The rows of the panel: people, sign-ins, one-time links, the audit log, and counts for charts. */
import { key, prefix } from "../store/kv.ts";

interface Passkey {
  id: string;
  name: string;
  publicKey: Uint8Array<ArrayBuffer>;
  /** Grows with each use, if the authenticator counts. */
  counter: number;
  transports: string[];
  createdAt: number;
  lastUsedAt: number | null;
}

/** An agent answers chats, and may do nothing else (`api/roles.ts`). */
type Role = "agent";

export interface Person {
  id: string;
  /** Lower case. */
  login: string;
  /** For whom the invitation was made, as its maker wrote. */
  name?: string;
  /** Null for an operator, who may act for every account. */
  accountId: string | null;
  /** Absent for an owner of the account, and for an operator. */
  role?: Role;
  /** Null if the person has only passkeys. See `password.ts`. */
  passwordHash: string | null;
  /** The sealed secret of one-time codes, which are required once `confirmed`. */
  totp: { secret: Uint8Array<ArrayBuffer>; confirmed: boolean; lastStep: number } | null;
  passkeys: Passkey[];
  createdAt: number;
  lastSignInAt: number | null;
  /** Addresses (`subscriberOf`) of earlier sign-ins, the latest first; older rows lack it until the next sign-in. */
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

/** The purpose of a link. */
export type Purpose =
  | { kind: "operator"; name?: string }
  | { kind: "member"; accountId: string; role?: Role; name?: string }
  | { kind: "line"; accountId: string; sessionId: string };

/** `by` is the person who made the link; missing if a command made it. */
export type Invitation = Purpose & { by?: string; createdAt: number; expiresAt: number };

export interface AuditEntry {
  id: string;
  at: number;
  /** Null if nobody was signed in. */
  personId: string | null;
  login: string | null;
  address: string;
  /** The account concerned; null for the gateway. */
  accountId: string | null;
  /** A name such as `signed_in` or `key_shown`, or for an API call its method and path. */
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
  /** A signed-in browser, by the SHA-256 (hex) of its token. */
  signIn: (personId: string, tokenHash: string) => key<SignIn>("panel_sign_in", personId, tokenHash),
  signInsOf: (personId: string) => prefix<SignIn>("panel_sign_in", personId),
  signIns: () => prefix<SignIn>("panel_sign_in"),
  /** A one-time link, by the SHA-256 (hex) of its token. */
  link: (tokenHash: string) => key<Invitation>("panel_link", tokenHash),
  links: () => prefix<Invitation>("panel_link"),
  /** Marks a passkey's challenge as answered, by its SHA-256 (hex); the value is when the challenge expires. */
  answered: (challengeHash: string) => key<number>("panel_answered", challengeHash),
  allAnswered: () => prefix<number>("panel_answered"),
  /** An action of a person; ids sort by time. */
  audit: (entryId: string) => key<AuditEntry>("panel_audit", entryId),
  audits: () => prefix<AuditEntry>("panel_audit"),
  /** The messages sent, failed and received on a UTC day (`YYYY-MM-DD`). */
  usage: (accountId: string, day: string) => key<DayCounts>("panel_usage", accountId, day),
  usageOf: (accountId: string) => prefix<DayCounts>("panel_usage", accountId),
  /** The cursor of the last counted event. */
  usageCursor: (accountId: string) => key<string>("panel_usage_cursor", accountId),
};
