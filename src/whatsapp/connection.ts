/**
 * One connection of one line: the calls it takes, the errors of these calls, and the events it reports.
 *
 * Contract: a `Connection` reports through `ConnectionEvents` until it has reported `closed`, exactly once. After that,
 * every call answers at once as if the line were offline. The network never throws into the caller's event handlers.
 * The outcome of a send is a value, not an exception.
 */
import type { Change } from "../store/kv.ts";
import type { Chats, Contacts, Groups, NumberCheck } from "./chats.ts";
import type { Incoming, Notice, Receipt } from "./incoming.ts";
import type { Outgoing, Prepared } from "./outgoing.ts";

export interface Connection {
  /**
   * Does the work that must precede a send: looks up the recipient, encrypts and uploads the file. The network does not
   * see a message yet. The result is held in memory and is valid for this connection only. Never throws. Aborting the
   * signal stops the work; the result must then be ignored.
   */
  prepare(message: Outgoing, signal: AbortSignal): Promise<Prepared>;
  /** Whether a message to this recipient would be accepted: a restricted account starts no chats. Throws StoreError. */
  allows(to: string): Promise<boolean>;
  /** Never rejects. */
  health(): Promise<ConnectionHealth>;
  /** Gives the signed challenge to the network. Throws PasskeyNotRequested, PasskeyRefused, NetworkTimeout. */
  signPasskey(assertion: PasskeyAssertion): Promise<void>;
  /** Confirms that the code shown here matches the one on the phone. Throws as `signPasskey` does. */
  confirmPasskey(): Promise<void>;
  /**
   * Asks whether a number has an account. Throws NetworkRefusal or NetworkTimeout if the network cannot be asked: the
   * answer is never a guess.
   */
  checkNumber(number: string): Promise<NumberCheck>;
  readonly groups: Groups;
  readonly contacts: Contacts;
  readonly chats: Chats;
  /** Unlinks the device on the network, then closes. Resolves even if the network could not be informed. */
  logout(): Promise<void>;
  /** Closes the socket and keeps the link. */
  close(): Promise<void>;
}

export interface ConnectionEvents {
  /** A new QR text to show. It replaces the previous one. */
  qr(text: string): void;
  /** The code to type on the phone: 8 characters. */
  pairingCode(code: string): void;
  /** The account's passkey is needed to complete the link. Null: it is no longer needed. */
  passkey(request: PasskeyRequest | null): void;
  /** The phone has accepted the link. A `closed` with reason `restart` follows. */
  linked(identity: OwnIdentity): void;
  /** Logged in and ready to send. Messages missed while offline are arriving. */
  open(identity: OwnIdentity): void;
  /** The account may not start new chats for now. Null: it may again. */
  restricted(restriction: Restriction | null): void;
  /**
   * Why the connection is unhealthy although it is open and has already been reopened once for that. Null: it is
   * healthy again.
   */
  degraded(reason: string | null): void;
  /** The connection has ended. This is the last event. */
  closed(reason: CloseReason): void;
  /**
   * An incoming message. Either the network is told "received" only after this promise resolves, or the adapter keeps
   * the message in a journal and hands it over again after a crash. So the receiver must commit the message, and must
   * drop duplicates.
   * `settle` adds the adapter's own rows to that commit: the journal is then done with the message, and the message can
   * be quoted. Resolves to whether these rows were committed; if not, the adapter writes them itself.
   */
  message(message: Incoming, settle: Settle): Promise<boolean>;
  receipt(receipt: Receipt): Promise<void>;
  /**
   * Events other than messages. As with `message`, a notice that is not committed is reported again, except presence.
   */
  notice(notice: Notice): Promise<void>;
}

/** Adds an adapter's own rows to a receiver's commit. */
export type Settle = (change: Change) => void | Promise<void>;

export interface OwnIdentity {
  /** Digits. */
  phone: string;
  /** `…@lid`; null if the network does not give it. */
  lid: string | null;
  pushName: string | null;
}

/** Why a connection ended. `code` is the network's number, if it gave one. */
export interface CloseReason {
  kind:
    | "asked" // close() or logout() was called
    | "restart" // 515: connect again at once
    | "replaced" // 440: another client took over; do not fight back
    | "logged_out" // 401, 403: the link is gone
    | "link_expired" // nobody scanned before the QR refs ran out, or a step with code or passkey failed
    | "refused" // the network rejects this login, or this link by code; see `retryAfterMs`
    | "lost" // the socket dropped or went silent: back off
    | "unavailable" // 408, 428, 500, 503: back off
    | "untrusted"; // the server or the linking phone did not prove its identity, and learned nothing; back off
  code: number | null;
  /** One sentence, free of secrets. */
  detail: string;
  /** For `refused`: how long to wait before trying again. Null: not before the owner asks for it. */
  retryAfterMs?: number | null;
}

/** The account may continue its existing chats but start no new ones. */
export interface Restriction {
  /** The kind of restriction, in the network's own terms. */
  kind: string;
  /** Unix ms; null if the network does not say. */
  until: number | null;
}

/** How many chats the account may start, and how many of these it has used. */
export interface NewChats {
  used: number;
  limit: number;
  /** Unix ms. */
  resetsAt: number | null;
}

/** Signs of life of a connection. Times are Unix ms; null if the event has not happened yet. */
export interface ConnectionHealth {
  lastFrameAt: number | null;
  /** When a message last arrived. */
  lastReceivedAt: number | null;
  /** When the network last acknowledged a message. */
  lastSentAt: number | null;
  /** Round-trip time of a ping made just now; null if it was not answered in time. */
  pingMs: number | null;
  newChats: NewChats | null;
  /** Number of messages on this connection that could not be decrypted at first. */
  undecryptable: number;
  webVersion: AnnouncedVersion;
}

/** The version of WhatsApp Web that the line announces to the network. */
export interface AnnouncedVersion {
  version: string;
  /** `setting`, `built in`, or the host that it was fetched from. */
  source: string;
  /** When it was fetched, or released if it is built in, or set: the start of the process. Unix ms. */
  since: number;
  /** When the network will refuse it, Unix ms; null if it has not said. */
  expiresAt: number | null;
}

/** What a person must do with the account's passkey before linking can continue. */
export type PasskeyRequest =
  | {
    /** Sign the challenge on `https://web.whatsapp.com`, the origin that the passkey is bound to. */
    stage: "required";
    /** WebAuthn request options as the network gave them: `challenge`, `rpId`, `allowCredentials`, … */
    options: Record<string, unknown>;
    /** Unix ms. After that a new challenge follows, or linking starts over. */
    expiresAt: number;
    /** Why the last signature was rejected, in one sentence; null for the first request. */
    refusal: string | null;
  }
  /** Compare this code (`XXXX-XXXX`) with the one on the phone. */
  | { stage: "confirm"; code: string; expiresAt: number };

/** A signed challenge in the form of `PublicKeyCredential.toJSON()`: binary fields are base64url. */
export interface PasskeyAssertion {
  id: string;
  rawId: string;
  type: "public-key";
  authenticatorAttachment?: string | null;
  response: {
    clientDataJSON: string;
    authenticatorData: string;
    signature: string;
    userHandle?: string | null;
  };
  clientExtensionResults: Record<string, unknown>;
}

/** Thrown when no passkey is being requested, or not this step of it. */
export class PasskeyNotRequested extends Error {
  override name = "PasskeyNotRequested";
}

/** Thrown when the signature was rejected. The message is one sentence that clients may read. */
export class PasskeyRefused extends Error {
  override name = "PasskeyRefused";
}

/** The network refused, or there is no connection to ask through. The message is one sentence that clients may read. */
export class NetworkRefusal extends Error {
  override name = "NetworkRefusal";
  /** The network's number for the reason, if it gave one. */
  readonly code: number | null;

  constructor(message: string, { code = null, cause }: { code?: number | null; cause?: unknown } = {}) {
    super(message, { cause });
    this.code = code;
  }
}

/** The network did not answer in time. The message is one sentence that clients may read. */
export class NetworkTimeout extends Error {
  override name = "NetworkTimeout";
}
