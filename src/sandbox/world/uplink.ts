/** The network as its phones see it: the seam between `phone/` and the server side. */
import type { BinaryNode } from "@whiskeysockets/baileys";
import type { Device, KeyBundle } from "./device.ts";
import type {
  CodeRequest,
  CompanionFinish,
  LinkAnswer,
  PasskeyCredential,
  PasskeyPrimary,
  PrimaryHello,
} from "./linking.ts";

/** The network as a phone sees it. Implemented by the server side, used by `phone/`. */
export interface PhoneUplink {
  /** Submits a message of this phone's device 0 to the relay; the code with which the network refuses it, or null. */
  submit(from: Device, message: BinaryNode): string | null;
  /** Sends any other stanza of that device: receipts, acks, retry receipts. */
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
  /** Carries primary_hello to the companion; its companion_finish, or null when it went away or did not answer. */
  answerCode(ref: string, hello: PrimaryHello): Promise<CompanionFinish | null>;
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
 * Stanzas of a phone, phone -> relay, as `submit` gets messages and `send` the others:
 * - `<message id to from type notify>`: `from` is the phone's jid, or its lid when it hides its number (the relay then
 *   tells no phone number; else it adds the other form as sender_lid/sender_pn, participant_lid/participant_pn).
 *   Content: `<participants><to jid=DEVICE><enc v type/></to>…</participants>`, in a group also `<enc type=skmsg/>` for all.
 *   To the phone's own companions the relay adds `recipient`, as for a companion's message to its own phone.
 * - `<message … to=DEVICE>` or in a group `<message … to=GROUP participant=DEVICE>` with one `<enc>`: for that device
 *   alone (an answer to a retry receipt); `recipient` says the chat when DEVICE is a companion of the phone itself.
 * - `<receipt id to from [participant] [type] [t]>`, `<ack id to class [type] [participant]>`: as any client sends them.
 * - `<notification id to=DEVICE type=mediaretry>`: the answer to a companion's `<receipt type=server-error>`.
 */
