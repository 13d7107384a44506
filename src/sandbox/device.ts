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
}

/** Public keys that a device publishes, as others fetch them to start a Signal session with it. */
export interface KeyBundle {
  registrationId: number;
  /** 32 bytes, without the type byte. */
  identityKey: Uint8Array;
  signedPreKey: { id: number; publicKey: Uint8Array; signature: Uint8Array };
  /** One-time keys; the network hands out each once, and none when they are used up. */
  preKeys: { id: number; publicKey: Uint8Array }[];
}

/** What a linking phone needs to know of the companion that shows a QR: the parts of its text. */
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
  /** Hands in the scanned QR's answer: the ADV identity signed by the phone, for the companion that waits on `ref`. */
  acceptQr(phone: Device, ref: string, signedIdentity: Uint8Array): LinkAnswer;
  /** Where media goes: the network's own TLS host. */
  readonly mediaUrl: string;
}

/** What the network says to a phone that scanned a QR. `refresh` asks it to read the QR that is shown next. */
export type LinkAnswer = { kind: "linked"; deviceJid: string } | { kind: "refresh" } | { kind: "unknown_ref" };
