/**
 * The seam between the network and its phones: the device that takes stanzas at once. What a linked gateway gets waits in
 * its mailbox. Jids: `<number>@s.whatsapp.net` (device 0, the phone),
 * `<number>:<n>@s.whatsapp.net` (a linked device), and the same under `<lid>@lid`.
 */
import type { BinaryNode } from "@whiskeysockets/baileys";

/** A phone, as the network delivers to it. */
export interface Device {
  /** Phone-number form of its address. */
  readonly jid: string;
  /** The same under `@lid`. */
  readonly lid: string;
  /** Hands over a stanza. Never throws. */
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
