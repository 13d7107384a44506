/** The interface between the phones (`phone/`) and the server side: what they exchange, also while a companion links. */
import type { KeyBundle } from "./key_store.ts";
import type { BinaryNode } from "./stanza.ts";

/** A phone as the network sees it. It receives stanzas immediately; those for a companion wait in its mailbox. */
export interface Device {
  /** Its address by phone number. */
  readonly jid: string;
  /** Its address by LID. */
  lid: string;
  /** Delivers a stanza. Never throws. */
  deliver(stanza: BinaryNode): void;
  /** Called when a companion of the account (given by its device jid) has logged in for the first time. */
  welcome(companion: string): void;
  /** Called when the account's salt has changed; sends the new one to the companions through the shared settings. */
  shareSalt(): void;
}

/** The network as a phone sees it. Implemented by the server side, used by `phone/`. */
export interface PhoneUplink {
  /** Submits a message of this phone's device 0 to the relay; returns the code with which it is refused, or null. */
  submit(from: Device, message: BinaryNode): string | null;
  /** Sends any other stanza of that device: receipts (also retry receipts) and acks. */
  send(from: Device, stanza: BinaryNode): void;
  /** Publishes or replenishes the phone's keys. */
  publishKeys(device: Device, bundle: KeyBundle): void;
  /** Takes a bundle with at most one one-time key; returns null for an unknown device. */
  takeBundle(jid: string): KeyBundle | null;
  /** Returns all devices of a user (phone and companions), by number or LID as the user is given. */
  devicesOf(user: string): string[];
  /** Maps a number to its LID, and a LID to its number; null if unknown. Jids without a device. */
  lidOf(pnJid: string): string | null;
  pnOf(lidJid: string): string | null;
  /** Returns the participants of a group, in the form of address that the group uses. */
  participantsOf(groupJid: string): string[];
  /**
   * Submits the ADV identity signed by the phone (an ADVSignedDeviceIdentityHMAC) for the companion that waits with
   * `ref`: the first part of a QR, or the ref of a `CodeRequest` whose exchange is complete.
   *
   * After `refresh` only a QR with a new `advSecret` counts. The real network detects an old secret by the HMAC. This
   * one cannot see the secret, so each phone remembers those it has offered and does not offer one again for the same
   * companion (it answers `refresh` itself).
   *
   * If the account requires a passkey, the identity is not used, and `primary` takes part in the exchange that begins.
   */
  acceptQr(phone: Device, ref: string, signedIdentity: Uint8Array, primary: PasskeyPrimary): LinkAnswer;
  /** Requires this passkey for linking companions from now on. */
  demandPasskey(phone: Device, credential: PasskeyCredential): void;
  /** Returns the companion_hello of the companion whose code is to be entered on this phone; null if there is none. */
  codeRequest(phone: Device): CodeRequest | null;
  /** Carries primary_hello to the companion; resolves to its companion_finish, or to null if it does not answer. */
  answerCode(ref: string, hello: PrimaryHello): Promise<CompanionFinish | null>;
  /** Returns the tokens with which the account may write to its chats. */
  chatsOf(phone: Device): ChatTokens;
  /** Applies an encoded SyncdPatch to the settings that the account's devices share. */
  changeSettings(phone: Device, patch: Uint8Array): void;
  /** As `changeSettings`, for a collection that is empty, without telling the companions; otherwise does nothing. */
  beginSettings(phone: Device, first: { name: string; patch: Uint8Array }): void;
  /** The network's own TLS host for media. */
  readonly media: MediaAccess;
}

/** The tokens that others gave an account, and the salt from which it makes its own for everybody else. */
export interface ChatTokens {
  /** `jid` is null where the other has hidden its number; `at` is Unix ms. */
  tokens: { jid: string | null; lid: string; token: Uint8Array; at: number }[];
  nctSalt: Uint8Array;
}

/** What a client needs to use the media host; a gateway learns host and auth by `media_conn`. */
export interface MediaAccess {
  /** `https://127.0.0.1:PORT`. */
  readonly url: string;
  /** Host and port, as in `media_conn`. */
  readonly host: string;
  /** The token that uploads must carry; for a line, its number is appended after a dot. */
  readonly auth: string;
  /** The certificate authority that issued the host's certificate. */
  readonly caPem: string;
  /** Stores a profile picture; returns its URL. */
  keepPicture(picture: Uint8Array): string;
}

/** A request to link a companion: its identity, and the secret known only to it and the phone. */
export interface LinkRequest {
  identityPublic: Uint8Array;
  advSecret: Uint8Array;
}

/**
 * The network's answer to a phone that scanned a QR. `refresh` asks it to scan the QR that is shown next, `passkey`
 * requires the owner to sign first. `unknown_ref` means that no companion shows this QR any longer, or that another
 * phone has used it.
 */
export type LinkAnswer =
  | { kind: "linked"; deviceJid: string }
  | { kind: "refresh" }
  | { kind: "passkey" }
  | { kind: "unknown_ref" };

/** The content of a companion's `companion_hello`, and the ref that the network assigned. */
export interface CodeRequest {
  ref: string;
  /** 32 bytes salt, 16 bytes IV, 32 bytes encrypted ephemeral key. */
  wrappedEphemeral: Uint8Array;
}

/** The phone's half of pairing by code (`primary_hello`). */
export interface PrimaryHello {
  /** In the same form as the companion's. */
  wrappedEphemeral: Uint8Array;
  identityPublic: Uint8Array;
}

/** The companion's answer (`companion_finish`). */
export interface CompanionFinish {
  /** 32 bytes salt, 12 bytes IV, then the AES-GCM of companion identity, primary identity and random bytes. */
  wrappedKeyBundle: Uint8Array;
  identityPublic: Uint8Array;
}

/** A passkey as a relying party stores it. */
export interface PasskeyCredential {
  /** Base64url. */
  readonly id: string;
  /** A COSE key. */
  readonly publicKey: Uint8Array;
  /** Signature counter; a value that does not increase reveals a cloned authenticator. */
  counter: number;
}

/** The phone's part in linking one companion with a passkey; called by the network. */
export interface PasskeyPrimary {
  /** Asks the owner to sign, for the first time or again. */
  ask(): void;
  /** Takes an encoded ProloguePayload whose assertion was valid; returns an encoded PrimaryEphemeralIdentity. */
  begin(prologue: Uint8Array, handoffProof: Uint8Array | null): Uint8Array;
  /** Takes the companion's nonce; returns false if it does not match the companion's commitment. */
  reveal(companionNonce: Uint8Array): boolean;
  /**
   * Takes an encoded EncryptedPairingRequest; returns null if it cannot be read. Resolves to the signed identity
   * (ADVSignedDeviceIdentityHMAC) once the owner has confirmed, or to null if the link fails.
   */
  open(encryptedRequest: Uint8Array): Promise<Uint8Array | null> | null;
  /** Ends the exchange, whatever its outcome. */
  end(): void;
}

/*
 * Stanzas from a phone to the relay; messages go by `submit`, all others by `send`:
 * - `<message id to from type notify>`: `from` is the phone's jid, or its LID if it hides its number. The relay adds
 *   the other form as sender_lid/sender_pn or participant_lid/participant_pn, but no number if it is hidden. Content:
 *   `<participants><to jid=DEVICE><enc v type/></to>…</participants>`, in a group also `<enc type=skmsg/>` for all
 *   members. To the phone's own companions the relay adds `recipient`, as for a companion's message to its own phone.
 * - `<message … to=DEVICE>`, or in a group `<message … to=GROUP participant=DEVICE>`, with one `<enc>` for that device
 *   only (the answer to a retry receipt). `recipient` names the chat if DEVICE is a companion of the phone itself.
 * - `<receipt id to from [participant] [type] [t]>`, `<ack id to class [type] [participant]>`: as from any client.
 * - `<notification id to=DEVICE type=mediaretry>`: the answer to a companion's `<receipt type=server-error>`.
 */
