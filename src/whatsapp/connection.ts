/**
 * The port to the messaging network. Nothing above `whatsapp/` knows which library is below (promise 8).
 *
 * Contract: a `Connection` reports through `ConnectionEvents` until it has reported `closed`, once; after that every
 * call answers at once as if offline. The network never throws into the caller's events. Outcomes are values.
 */
import type { Change } from "../store/kv.ts";
import type { Chats, Contacts } from "./contacts.ts";
import type { Groups } from "./groups.ts";
import type { Notice } from "./notices.ts";
import type { Key } from "../store/kv.ts";
import type { Traces } from "./person.ts";

/** Opens connections and keeps what links a line (credentials, signal keys) between them. */
export interface Network {
  /** Resolves to a connection that has begun to connect. One open connection a line at most. */
  open(options: OpenOptions, events: ConnectionEvents): Promise<Connection>;
  /** Whether the line holds credentials of a completed link. */
  isLinked(lineId: string): Promise<boolean>;
  /**
   * Drops credentials and every key of the line. Only after a real log-out (promise 5). What was received and not
   * handed over yet goes to `message` of the line's last `open` before, though that connection is closed.
   */
  forget(lineId: string): Promise<void>;
  /**
   * What is kept, for 30 days, of a message that the line received or that its owner sent from the phone; null when
   * nothing is. Throws StoreError.
   */
  recall(lineId: string, networkId: string): Promise<Recalled | null>;
  /** The digits behind a `@lid`, as far as the line has been told; also while it is away. Throws StoreError. */
  numberOf(lineId: string, lid: string): Promise<string | null>;
  /** As `numberOf`, the other way round. */
  lidOf(lineId: string, number: string): Promise<string | null>;
  /**
   * Removes what the line keeps of a person, its copies of sent messages aside, a piece at a time: begins at `at` (null: at
   * the first row) and resolves to where to go on, null at the end. Throws StoreError, SealError.
   */
  erase(lineId: string, traces: Traces, at: Key | null): Promise<Key | null>;
  /** Removes the copies of messages that the line sent. Throws StoreError. */
  eraseSent(lineId: string, networkIds: readonly string[]): Promise<void>;
  /** The version of the network's web client that was announced last, and where it is from; null before the first. */
  webVersion(): AnnouncedVersion | null;
  /** Drops rows of the engine's own whose time is over. Returns how many. */
  sweep(): Promise<number>;
}

/** What links lines, for taking it to another gateway. While it is read or written, the line must not be connected. */
export interface LinkCopy {
  /** Credentials and keys of the line in the clear: seal them. */
  read(lineId: string): Promise<Uint8Array>;
  /** Makes them the line's here. */
  write(lineId: string, copy: Uint8Array): Promise<void>;
  /** The line is linked no more. */
  drop(lineId: string): Promise<void>;
}

export interface OpenOptions {
  lineId: string;
  /** What the account is known to be under since an earlier connection. */
  restriction: Restriction | null;
  /** The line's own way out, with its login; null for none. There is no other while it is set. */
  proxy: string | null;
  /** Link by code for this number (digits) when the line is not linked yet; null links by QR. */
  pairingPhone: string | null;
}

/** Adds an adapter's own rows to a receiver's commit. */
export type Settle = (change: Change) => void;

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

/** What a person has to do with the account's passkey before the link goes on. */
export type PasskeyRequest =
  | {
    /** Sign the challenge, on `https://web.whatsapp.com`, which the passkey is bound to. */
    stage: "required";
    /** WebAuthn request options as the network gave them: `challenge`, `rpId`, `allowCredentials`, … */
    options: Record<string, unknown>;
    /** Unix ms; a new challenge follows, or the link begins anew. */
    expiresAt: number;
    /** Why the last signature was not taken, one sentence; null for the first. */
    refusal: string | null;
  }
  /** Compare `XXXX-XXXX` with the phone's. */
  | { stage: "confirm"; code: string; expiresAt: number };

/** A signed challenge, as `PublicKeyCredential.toJSON()` gives it: binary fields are base64url. */
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

/** The network lets the account go on with its chats, and start no new ones. */
export interface Restriction {
  /** As the network names it. */
  kind: string;
  /** Unix ms; null where the network does not tell. */
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
interface AnnouncedVersion {
  version: string;
  /** Where it is from. */
  source: string;
  /** When it was learned, Unix ms. */
  since: number;
}

export interface OwnIdentity {
  /** Digits. */
  phone: string;
  /** `…@lid`, where the network tells it. */
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
    | "untrusted"; // the server, or the phone that links, did not prove who it is: nothing was told to it; back off
  code: number | null;
  /** One sentence, free of secrets. */
  detail: string;
  /** Of `refused`: when it makes sense to try again; null: not before the owner asks for it. */
  retryAfterMs?: number | null;
}

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
  /** Unlinks the device on the network, then closes. Resolves also when the network could not be told. */
  logout(): Promise<void>;
  /** Closes the socket, keeps the link. */
  close(): Promise<void>;
}

/** As what a file arrives. */
export type FileKind = "image" | "video" | "audio" | "document" | "sticker" | "voice";

/** Names a message within its chat. */
export interface MessageKey {
  networkId: string;
  /** Its author in a group, a JID; null in a 1:1 chat, and of the line's own. */
  participant: string | null;
  fromMe: boolean;
}

/** What can be sent on. */
export type ForwardableKind = FileKind | "text" | "location" | "contact";

export interface Recalled extends Pick<Incoming, "chat" | "participant" | "fromMe" | "number"> {
  /** As what it can be sent on; null when it cannot. */
  kind: ForwardableKind | null;
  text: string | null;
  caption: string | null;
  filename: string | null;
}

/** What goes with a message beside its content. Members that are left out: plainly. */
export interface Manner {
  /** The message of the chat that it answers, and what is shown of it where the network's own form is kept no more. */
  quote?: MessageKey & { chat: string; text: string | null };
  /** JIDs or digits; "all": everybody in the group. */
  mentions?: readonly string[] | "all";
  /** Of an image, a video or a sound: can be seen or heard once. */
  viewOnce?: true;
  preview?: LinkPreview;
}

/** What is shown of a link in a text. */
export interface LinkPreview {
  /** As it stands in the text. */
  url: string;
  title: string;
  description: string | null;
  /** The file of a picture. */
  picture: Uint8Array | null;
}

export type OutgoingBody =
  | { kind: "text"; text: string }
  | {
    kind: FileKind;
    /** Where the file lies on disk. */
    path: string;
    size: number;
    filename: string;
    mimetype: string;
    caption: string | null;
  }
  | { kind: "location"; latitude: number; longitude: number; name: string | null; address: string | null }
  /** Phones are digits. */
  | { kind: "contact"; contacts: { name: string; phone: string; organization: string | null }[] }
  | { kind: "poll"; question: string; options: string[]; multiple: boolean }
  /** An empty emoji takes the reaction back. */
  | { kind: "reaction"; emoji: string; target: MessageKey }
  /** What the network has of a message that this or another line sent or received. */
  | { kind: "forward"; source: { lineId: string; networkId: string } }
  /** Changes a text that the line sent to this chat, by network id. */
  | { kind: "edit"; target: string; text: string }
  /** Deletes a message of the chat for everyone; somebody else's as admin of the group. */
  | { kind: "revoke"; target: MessageKey }
  /** A post for these numbers alone; its message goes to `STATUS_CHAT`. */
  | { kind: "status"; of: PostedBody; audience: readonly string[] };

/** Where status posts go. */
export const STATUS_CHAT = "status@broadcast";

/** What can be posted. */
export type PostedBody = Extract<OutgoingBody, { kind: "text" | "image" | "video" | "audio" | "voice" }>;

export type FileBody = Extract<OutgoingBody, { kind: FileKind }>;

export interface Outgoing {
  networkId: string;
  /** Digits, or a JID (`…@s.whatsapp.net`, `…@lid`, `…@g.us`). */
  to: string;
  body: OutgoingBody;
  manner?: Manner;
}

/** What became of one attempt. `hold` and only `hold` burns no attempt. */
export type SendOutcome =
  | { kind: "sent"; chat: string }
  /** The network, or the message itself, says no for good. */
  | { kind: "refused"; code: string; detail: string }
  /** It surely did not leave; trying again may work (media upload failed, key query failed, …). */
  | { kind: "retry"; detail: string }
  /** Not connected: nothing was tried. */
  | { kind: "hold"; detail: string }
  /** The account may start no new chats for now: it waits until it may, and is not tried again before. */
  | { kind: "restricted"; detail: string }
  /** It may have left, the ack did not come: the same id again after the reconnect. */
  | { kind: "unknown"; detail: string };

/** A message that can leave at once, or why it cannot. */
export type Prepared =
  | {
    kind: "ready";
    /** Adds to the commit of its departure what has to be on disk by then: a copy for receivers who ask for it again. */
    keep(change: Change): void;
    /** Shows the chat that somebody types, until the message is there. Never throws. */
    type(): void;
    /** Sends it, once, under its network id and waits for the server's ack. Never throws. */
    send(): Promise<SendOutcome>;
  }
  | Unsent;

/** The outcomes of an attempt that surely did not reach the network as a message. */
export type Unsent = Extract<SendOutcome, { kind: "refused" | "retry" | "hold" }>;

export interface NumberCheck {
  exists: boolean;
  /** `<number>@s.whatsapp.net`; the canonical one where the network corrected it. */
  jid: string;
}

export interface Receipt {
  networkId: string;
  /** Chat JID of the message. */
  chat: string;
  /** Who received or read it, in a group; null in a 1:1 chat. */
  participant: string | null;
  status: "delivered" | "read";
  at: number;
}

export const INCOMING_TYPES = [
  "conversation",
  "extendedTextMessage",
  "imageMessage",
  "videoMessage",
  "audioMessage",
  "documentMessage",
  "stickerMessage",
  "reactionMessage",
  "locationMessage",
  "liveLocationMessage",
  "contactMessage",
  "contactsArrayMessage",
  "pollCreationMessage",
  "buttonsResponseMessage",
  "listResponseMessage",
] as const;
export type IncomingType = (typeof INCOMING_TYPES)[number] | "unknown";

export interface Incoming {
  networkId: string;
  /** Chat JID: the sender's in a 1:1 chat, the group's in a group. */
  chat: string;
  /** The sender inside a group; null in a 1:1 chat. */
  participant: string | null;
  /** Sent by the line's owner from the phone or another device. */
  fromMe: boolean;
  /** Digits of the real sender, resolved through attributes or the mapping store; null where the network never told. */
  number: string | null;
  pushName: string | null;
  /** Unix seconds. */
  timestamp: number;
  type: IncomingType;
  text: string | null;
  media: IncomingMedia | null;
  /** The message that it answers. */
  quoted: Quoted | null;
  /** JIDs of those whom it mentions; the line itself by its number. */
  mentions: readonly string[];
  isForwarded: boolean;
  /** To be seen once; its file may be withheld from linked devices. */
  viewOnce: boolean;
  /** Where the chat came from, as far as the network tells: an ad, a link. */
  ad: Record<string, string> | null;
  /** What it does to an earlier message in place of saying something itself; null as a rule. */
  change: IncomingChange | null;
  /** Type-specific content that the envelope has no field for (location, contacts, poll, reaction target, …). */
  details: Record<string, unknown> | null;
  /** True for a message that could not be decrypted and whose retry failed too. */
  undecryptable: boolean;
}

/** A message that another one answers. */
export interface Quoted {
  /** Its id on the network. */
  messageId: string;
  /** Whether the line sent it. */
  fromMe: boolean;
  /** JID of its author, where the network names it. */
  participant: string | null;
  /** What a person reads first of it. */
  text: string | null;
}

/** An edit, a deletion or a vote; `target` is the network's id of the message that it is about. */
export type IncomingChange =
  | { kind: "edited"; target: string; text: string | null }
  | { kind: "deleted"; target: string }
  /** All that the voter chooses now; empty when the vote is taken back. */
  | { kind: "vote"; target: string; options: readonly string[] };

export interface IncomingMedia {
  mimetype: string;
  /** Original name for documents; null for other kinds. */
  filename: string | null;
  /** Size the sender claims, bytes; null if none. */
  size: number | null;
  /**
   * Downloads, decrypts and verifies as a stream, each time anew. Asks the phone to upload again once when the file is
   * gone from the network. Rejects, and errors the stream, with MediaTrouble where another try may succeed and with
   * MediaUnavailable where none will.
   */
  download(signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** The file of an incoming message cannot be had, now or later: it is gone, was altered, or has no key. */
export class MediaUnavailable extends Error {
  override name = "MediaUnavailable";
}

/** The file of an incoming message cannot be had now: the network or its media host is in trouble that may pass. */
export class MediaTrouble extends Error {
  override name = "MediaTrouble";
}

/** The network said no, or there is no connection to ask it by. The message is one sentence that clients may read. */
export class NetworkRefusal extends Error {
  override name = "NetworkRefusal";
  /** The network's number for the reason, where it gave one. */
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

/** Nobody is asked for a passkey, or for this step of it, now. */
export class PasskeyNotRequested extends Error {
  override name = "PasskeyNotRequested";
}

/** The signature was not taken. The message is one sentence that clients may read. */
export class PasskeyRefused extends Error {
  override name = "PasskeyRefused";
}
