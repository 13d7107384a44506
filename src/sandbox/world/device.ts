/**
 * The seam inside the simulated network: who can receive a stanza. A linked gateway behind its socket and a simulated
 * phone in this process are both devices to the relay. Jids: `<number>@s.whatsapp.net` (device 0, the phone),
 * `<number>:<n>@s.whatsapp.net` (a linked device), and the same under `<lid>@lid`.
 */
import type { BinaryNode } from "@whiskeysockets/baileys";

/** One device that the relay can deliver to. */
export interface Device {
  /** Phone-number form of its address, with device number where it is not 0. */
  readonly jid: string;
  /** The same under `@lid`. */
  readonly lid: string;
  /** Hands over a stanza. Never throws; a device that is away keeps nothing (the relay queues for it). */
  deliver(stanza: BinaryNode): void;
  /** A companion of the account (its device jid) is logged in for the first time. */
  welcome(companion: string): void;
  /** The account's salt has changed: tells its companions by the settings that they share. */
  shareSalt(): void;
}

/** Public keys that a device publishes, as others fetch them to start a Signal session with it. */
export interface KeyBundle {
  registrationId: number;
  /** 32 bytes, without the type byte. */
  identityKey: Uint8Array;
  signedPreKey: { id: number; publicKey: Uint8Array; signature: Uint8Array };
  /** One-time keys; the network hands out each once. */
  preKeys: { id: number; publicKey: Uint8Array }[];
}

/** What a phone needs to know of the companion that it links: the parts of the QR's text. */
export interface QrText {
  ref: string;
  noisePublic: Uint8Array;
  identityPublic: Uint8Array;
  advSecret: Uint8Array;
  platform: string;
}

/** The network as a phone sees it. Implemented by the server side, used by `phone/`. */
export interface PhoneUplink {
  /** Sends a stanza from this phone's device 0 into the relay: messages, receipts, acks, retry receipts. */
  send(from: Device, stanza: BinaryNode): void;
  /** Publishes or replenishes the phone's key bundle. */
  publishKeys(device: Device, bundle: KeyBundle): void;
  /** One bundle with at most one one-time key taken, or null for an unknown device. */
  takeBundle(jid: string): KeyBundle | null;
  /** Every device of a user (phone and companions), phone-number form, by number or lid. */
  devicesOf(user: string): string[];
  /** Number of a lid user and the other way round; null when unknown. Full jids without device. */
  lidOf(pnJid: string): string | null;
  pnOf(lidJid: string): string | null;
  /** Participants (phone-number jids) of a group. */
  participantsOf(groupJid: string): string[];
  /**
   * Submits the ADV identity signed by the phone (an ADVSignedDeviceIdentityHMAC) for the companion that waits on `ref`:
   * the first part of a QR, or the ref of a `CodeRequest` whose exchange is done. After `refresh` only a QR with a new
   * `advSecret` counts: the network cannot see that secret, so a phone keeps the ones it offered and does not offer one
   * again for the same companion (it answers `refresh` itself), as the real network tells by the HMAC. Where the account
   * demands a passkey the identity is not used, and `primary` takes part in the exchange that begins.
   */
  acceptQr(phone: Device, ref: string, signedIdentity: Uint8Array, primary: PasskeyPrimary): LinkAnswer;
  /** From now on the account's links demand this passkey. */
  demandPasskey(phone: Device, credential: PasskeyCredential): void;
  /** The companion that waits for its code to be typed on this phone (it said companion_hello); null when none does. */
  codeRequest(phone: Device): CodeRequest | null;
  /** Carries primary_hello to that companion; its companion_finish, or null when it went away or did not answer. */
  answerCode(phone: Device, ref: string, hello: PrimaryHello): Promise<CompanionFinish | null>;
  /** The tokens by which the account may write to its chats. */
  chatsOf(phone: Device): ChatTokens;
  /** Applies an encoded SyncdPatch to the settings that the account's devices share. */
  changeSettings(phone: Device, patch: Uint8Array): void;
  /** Where media goes: the network's own TLS host. */
  readonly media: MediaAccess;
}

/** Tokens that others gave an account, and the salt from which it makes tokens for everybody else. */
export interface ChatTokens {
  /** `at` is Unix ms. */
  tokens: { jid: string; lid: string; token: Uint8Array; at: number }[];
  nctSalt: Uint8Array;
}

/** What a client needs in order to use the media host; `media_conn` tells a gateway host and auth. */
export interface MediaAccess {
  /** `https://127.0.0.1:PORT`. */
  readonly url: string;
  /** Host and port, as `media_conn` names it. */
  readonly host: string;
  /** Token that uploads must carry; a line's has its number behind a dot. */
  readonly auth: string;
  /** The certificate authority that vouches for the host. */
  readonly caPem: string;
  /** Keeps a profile picture; resolves to its address. */
  keepPicture(picture: Uint8Array): string;
}

/*
 * Stanzas of a phone, phone -> relay, as `send` gets them:
 * - `<message id to from type notify>`: `from` is the phone's jid, or its lid when it hides its number (the relay then
 *   tells no phone number; else it adds the other form as sender_lid/sender_pn, participant_lid/participant_pn).
 *   Content: `<participants><to jid=DEVICE><enc v type/></to>…</participants>`, in a group also `<enc type=skmsg/>` for all.
 *   To the phone's own companions the relay adds `recipient`, as for a companion's message to its own phone.
 * - `<message … to=DEVICE>` or in a group `<message … to=GROUP participant=DEVICE>` with one `<enc>`: for that device
 *   alone (an answer to a retry receipt); `recipient` says the chat when DEVICE is a companion of the phone itself.
 * - `<receipt id to from [participant] [type] [t]>`, `<ack id to class [type] [participant]>`: as any client sends them.
 * - `<notification id to=DEVICE type=mediaretry>`: the answer to a companion's `<receipt type=server-error>`.
 */

/** What a companion's companion_hello holds, and the ref that the network gave it. */
export interface CodeRequest {
  ref: string;
  /** 32 bytes salt, 16 bytes IV, 32 bytes encrypted ephemeral key. */
  wrappedEphemeral: Uint8Array;
  noisePublic: Uint8Array;
}

/** The phone's half of pairing by code. */
export interface PrimaryHello {
  /** Same form as the companion's. */
  wrappedEphemeral: Uint8Array;
  identityPublic: Uint8Array;
}

/** The companion's answer. */
export interface CompanionFinish {
  /** 32 bytes salt, 12 bytes IV, AES-GCM of companion identity, primary identity and a random. */
  wrappedKeyBundle: Uint8Array;
  identityPublic: Uint8Array;
}

/** A passkey as a relying party keeps it. */
export interface PasskeyCredential {
  /** Base64url. */
  readonly id: string;
  /** A COSE key. */
  readonly publicKey: Uint8Array;
  /** Signatures so far, which reveal a copied authenticator. */
  counter: number;
}

/** A passkey with its private key (PKCS #8), as a virtual authenticator takes it. */
export interface ExportedPasskey {
  credentialId: string;
  rpId: string;
  userHandle: string;
  privateKey: Uint8Array;
}

/** A WebAuthn assertion in the form of `PublicKeyCredential.toJSON()`; binary fields are base64url. */
export interface AssertionJson {
  id: string;
  rawId: string;
  type: "public-key";
  authenticatorAttachment: "platform";
  response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle: string };
  clientExtensionResults: Record<string, never>;
}

/** The phone's part in linking one companion with a passkey, as the network calls it. */
export interface PasskeyPrimary {
  /** The owner has been asked to sign, at first or anew. */
  ask(): void;
  /** Takes an encoded ProloguePayload whose assertion was right; answers with an encoded PrimaryEphemeralIdentity. */
  begin(prologue: Uint8Array, handoffProof: Uint8Array | null): Uint8Array;
  /** Takes the companion's nonce; false when the companion had committed to another. */
  reveal(companionNonce: Uint8Array): boolean;
  /**
   * Takes an encoded EncryptedPairingRequest; null when it cannot be read. Resolves with the signed identity
   * (ADVSignedDeviceIdentityHMAC) when the owner has confirmed, or with null when the link fails.
   */
  open(encryptedRequest: Uint8Array): Promise<Uint8Array | null> | null;
  /** The exchange is over, whatever its outcome. */
  end(): void;
}

/** What the phone shows of a link with a passkey: whether its owner has to compare the code with the companion's. */
export interface PasskeyState {
  stage: "required" | "confirm" | "confirmed";
  /** `XXXX-XXXX`, from `confirm` on. */
  code: string | null;
}

/** A simulated phone as the control API drives it; `phone/phone.ts` makes it. Throws Problem for bad input. */
export interface Phone extends Device {
  /** Digits. */
  readonly number: string;
  readonly name: string;
  /** Reads a QR, raw text or PNG data URL, as its owner would. */
  scan(qr: string): Promise<LinkAnswer>;
  /** Types the code that a companion shows. */
  enterCode(code: string): Promise<CodeAnswer>;
  /** The link with a passkey that is under way, or null. */
  passkeyState(): PasskeyState | null;
  /** Signs WebAuthn request options, as the owner's browser would. Throws Problem not_found without a passkey. */
  signPasskey(options: unknown): AssertionJson;
  /** The owner sees the same code on the companion. Throws Problem not_found when no code is shown. */
  confirmPasskey(): void;
  /** Throws Problem not_found without a passkey. */
  exportPasskey(): ExportedPasskey;
  /** Encrypts and sends; resolves when the network has accepted it. */
  sendMessage(message: PhoneMessage): Promise<{ id: string }>;
  /** What it decrypted, oldest first. */
  inbox(): InboxItem[];
  /** Sends the read receipt of a message in the inbox. Throws Problem not_found. */
  read(messageId: string): void;
  /** Votes on a poll in the inbox, by the names of options. Throws Problem not_found or validation_failed. */
  vote(messageId: string, options: readonly string[]): Promise<{ id: string }>;
  /** Reacts to a message in the inbox; an empty emoji takes it back. Throws Problem not_found. */
  react(messageId: string, emoji: string): Promise<{ id: string }>;
  /** Changes the text of a message that this phone sent. Throws Problem not_found. */
  edit(messageId: string, text: string): Promise<{ id: string }>;
  /** Deletes a message that this phone sent, for everyone. Throws Problem not_found. */
  revoke(messageId: string): Promise<{ id: string }>;
  /** Shows that its owner is typing in a chat, or has stopped. */
  setTyping(to: string, state: "typing" | "recording" | "paused"): void;
  /** Calls; nobody has to answer. */
  call(to: string, options: { video: boolean }): { callId: string };
  /** What it saw others do in chats, oldest first. */
  chatStates(): ChatState[];
  /** Resolves when everything delivered so far has been processed. */
  idle(): Promise<void>;
  describe(): { number: string; lid: string; name: string };
}

/** `no_request`: nothing waits for a code on this number; `wrong_code`: the exchange failed, as with a mistyped code. */
export type CodeAnswer = LinkAnswer | { kind: "no_request" } | { kind: "wrong_code" };

export const FILE_KINDS = ["image", "video", "audio", "document", "sticker"] as const;
export type PhoneFileKind = (typeof FILE_KINDS)[number];

/** What a phone can be told to send. `to`: digits, or a jid of a user or a group. */
export type PhoneMessage =
  & { to: string; hideNumber?: boolean }
  & (
    | { text: string }
    /** `file` is base64. */
    | { file: string; kind?: PhoneFileKind; filename?: string; mimetype?: string; caption?: string }
    /** A WhatsApp protobuf Message as JSON. */
    | { message: Record<string, unknown> }
  );

/** What a message holds besides its text and file; null, false or empty for what it lacks. */
export interface MessageDetails {
  /** The message that this one answers, and what is shown of it. */
  quoted: { id: string; text: string | null } | null;
  /** JIDs. */
  mentions: readonly string[];
  forwarded: boolean;
  viewOnce: boolean;
  location: { latitude: number; longitude: number; name: string | null; address: string | null } | null;
  contacts: { name: string; vcard: string }[] | null;
  poll: { question: string; options: string[]; multiple: boolean } | null;
  /** To which message; an empty emoji takes it back. */
  reaction: { id: string; emoji: string } | null;
  linkPreview: { url: string; title: string | null; description: string | null; hasPicture: boolean } | null;
  /** Of a voice note: its length, and the waveform that the app draws. */
  voice: { seconds: number; waveform: number[] } | null;
}

/** What is in a message, apart from its file. */
export interface MessageContent extends MessageDetails {
  /** Name of the protobuf field: `conversation`, `documentMessage`, …; `reaction` for a reaction. */
  type: string;
  text: string | null;
  caption: string | null;
  filename: string | null;
  mimetype: string | null;
  /** An audio that the app plays as a voice note. */
  voiceNote: boolean;
  /** As the message says, before the image is downloaded; null when it does not. */
  imageSize: { width: number; height: number } | null;
  /** Whether the message carries a preview to show until the file is downloaded. */
  hasPreview: boolean;
}

/** What a phone sees somebody do in a chat besides writing. */
export interface ChatState {
  /** As `InboxItem` names them. */
  from: string;
  chat: string;
  state: "typing" | "recording" | "paused" | "available" | "unavailable";
  /** Unix ms. */
  timestamp: number;
}

export interface InboxItem extends MessageContent {
  id: string;
  /** Sender without device, `<number>@s.whatsapp.net` where the number is known. */
  from: string;
  /** The group, or the other side of a 1:1 chat. */
  chat: string;
  fromMe: boolean;
  /** Of the decrypted file, hex; null without a file, or when it could not be had (`mediaError` says why). */
  sha256: string | null;
  /** Bytes of the decrypted file. */
  size: number | null;
  mediaError: string | null;
  /** Unix ms, the network's. */
  timestamp: number;
  /** How many times a message with this chat, sender and id arrived; asking for a retry is not counted. */
  copies: number;
  /** Its sender has changed its text since; `text` is the new one. */
  edited: boolean;
  /** Its sender has deleted it for everyone. */
  revoked: boolean;
}

/**
 * What the network says to a phone that scanned a QR. `refresh` asks it to read the QR that is shown next, `passkey` says
 * that the owner has to sign first.
 */
export type LinkAnswer =
  | { kind: "linked"; deviceJid: string }
  | { kind: "refresh" }
  | { kind: "passkey" }
  | { kind: "unknown_ref" };
