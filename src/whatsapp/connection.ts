/**
 * One connection of one line: the calls it takes, and what it reports.
 *
 * Contract: a `Connection` reports through `ConnectionEvents` until it has reported `closed`, once; after that every
 * call answers at once as if offline. The network never throws into the caller's events. Outcomes are values.
 */
import type { Change } from "../store/kv.ts";
import type { Chats, Contacts, NumberCheck } from "./contacts.ts";
import type { Groups } from "./groups.ts";
import type { Incoming, Receipt } from "./incoming.ts";
import type { Notice } from "./notices.ts";
import type { Outgoing, Prepared } from "./outgoing.ts";
import type { PasskeyAssertion, PasskeyRequest } from "./passkey.ts";

export interface Connection {
  /**
   * Does what one message needs before it can leave: its recipient is looked up, its file encrypted and uploaded. The
   * network sees no message yet. What comes of it is kept in memory, and good for this connection alone. Never throws.
   * An abort ends what it still does; what it resolves to is then nobody's concern.
   */
  prepare(message: Outgoing, signal: AbortSignal): Promise<Prepared>;
  /** Whether the network lets a message to this recipient through: not to a new chat while the account is restricted. */
  allows(to: string): Promise<boolean>;
  /** Never rejects. */
  health(): Promise<ConnectionHealth>;
  /** Gives the network the signed challenge. Throws PasskeyNotRequested, PasskeyRefused, NetworkTimeout. */
  signPasskey(assertion: PasskeyAssertion): Promise<void>;
  /** The codes here and on the phone are the same. Throws as signPasskey does. */
  confirmPasskey(): Promise<void>;
  /** Throws NetworkRefusal or NetworkTimeout when the network cannot be asked: a guess is never an answer. */
  checkNumber(number: string): Promise<NumberCheck>;
  readonly groups: Groups;
  readonly contacts: Contacts;
  readonly chats: Chats;
  /** Unlinks the device on the network, then closes. Resolves also when the network could not be informed. */
  logout(): Promise<void>;
  /** Closes the socket, keeps the link. */
  close(): Promise<void>;
}

export interface ConnectionEvents {
  /** A new QR text to show; replaces the previous one. */
  qr(text: string): void;
  /** The code to type on the phone, 8 characters. */
  pairingCode(code: string): void;
  /** The account asks for its passkey while it is linked; null: nothing is asked of anybody any more. */
  passkey(request: PasskeyRequest | null): void;
  /** The phone accepted the link; a `closed` with reason `restart` follows. */
  linked(identity: OwnIdentity): void;
  /** Logged in: ready to send; messages missed while offline are coming in. */
  open(identity: OwnIdentity): void;
  /** The account may not start new chats for now; null: it may again. */
  restricted(restriction: Restriction | null): void;
  /** Why it is not well, though it is open and was opened anew for that; null: it is well again. */
  degraded(reason: string | null): void;
  /** The connection has ended; the last event. */
  closed(reason: CloseReason): void;
  /**
   * An incoming message. The network is told "received" only after this promise resolves, or the message is kept in
   * a journal of the adapter and given again after a crash: the receiver must commit, and must drop what it has seen.
   * `settle` adds to that commit what the adapter keeps with it: the journal is done with the message, which can be
   * quoted from then on. Resolves to whether that was committed; where not, the adapter writes it by itself.
   */
  message(message: Incoming, settle: Settle): Promise<boolean>;
  receipt(receipt: Receipt): Promise<void>;
  /** What happens beside messages. As with `message`: what is not kept comes again, presence excepted. */
  notice(notice: Notice): Promise<void>;
}

/** Adds an adapter's own rows to a receiver's commit. */
export type Settle = (change: Change) => void;

export interface OwnIdentity {
  /** Digits. */
  phone: string;
  /** `…@lid`, where the network gives it. */
  lid: string | null;
  pushName: string | null;
}

/** Why a connection ended. `code` is the network's number where it gave one. */
export interface CloseReason {
  kind:
    | "asked" // close() or logout() was called
    | "restart" // 515: connect again at once
    | "replaced" // 440: another client took the place: do not fight back
    | "logged_out" // 401, 403: the link is gone
    | "link_expired" // nobody scanned before the QR refs ran out, or a passkey came to nothing
    | "refused" // the network does not want this login, or this link by code: see `retryAfterMs`
    | "lost" // the socket dropped or went silent: back off
    | "unavailable" // 408, 428, 500, 503: back off
    | "untrusted"; // the server, or the phone that links, did not prove who it is: it learned nothing from us; back off
  code: number | null;
  /** One sentence, free of secrets. */
  detail: string;
  /** Of `refused`: when it makes sense to try again; null: not before the owner asks for it. */
  retryAfterMs?: number | null;
}

/** The network lets the account go on with its chats, and start no new ones. */
export interface Restriction {
  /** As the network names it. */
  kind: string;
  /** Unix ms; null where the network does not say. */
  until: number | null;
}

/** How many chats the account may start. */
export interface NewChats {
  used: number;
  limit: number;
  /** Unix ms. */
  resetsAt: number | null;
}

/** Signs of life of a connection; times are Unix ms, null for what has not happened. */
export interface ConnectionHealth {
  lastFrameAt: number | null;
  /** A message came. */
  lastReceivedAt: number | null;
  /** The network acknowledged a message. */
  lastSentAt: number | null;
  /** How long the network took to answer just now; null when it did not. */
  pingMs: number | null;
  newChats: NewChats | null;
  /** Messages of this connection that could not be read at first. */
  undecryptable: number;
  webVersion: AnnouncedVersion;
}

/** The version of the network's web client that is announced. */
export interface AnnouncedVersion {
  version: string;
  /** Where it is from. */
  source: string;
  /** When it was learned, Unix ms. */
  since: number;
}
