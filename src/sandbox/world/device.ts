/**
 * The interface between the network and its phones. A phone receives stanzas immediately; those for a linked gateway
 * wait in its mailbox.
 *
 * Jids: `<number>@s.whatsapp.net` is the phone (device 0), `<number>:<n>@s.whatsapp.net` a linked device. Both also
 * have an address under `<lid>@lid`.
 */
import type { BinaryNode } from "@whiskeysockets/baileys";

/** A phone as the network sees it. */
export interface Device {
  /** Its address by phone number. */
  readonly jid: string;
  /** Its address by LID. */
  readonly lid: string;
  /** Delivers a stanza. Never throws. */
  deliver(stanza: BinaryNode): void;
  /** Called when a companion of the account (given by its device jid) has logged in for the first time. */
  welcome(companion: string): void;
  /** Called when the account's salt has changed; sends the new one to the companions through the shared settings. */
  shareSalt(): void;
}

/** The public keys that a device publishes, with which others start a Signal session. */
export interface KeyBundle {
  registrationId: number;
  /** 32 bytes, without the type byte. */
  identityKey: Uint8Array;
  signedPreKey: { id: number; publicKey: Uint8Array; signature: Uint8Array };
  /** One-time keys; the network gives each to one requester only. */
  preKeys: { id: number; publicKey: Uint8Array }[];
}
