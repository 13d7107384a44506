/** Messages as they come in, and what is reported of those that went out. */
import type { ForwardableKind } from "./outgoing.ts";

export interface Incoming {
  networkId: string;
  /** Chat JID: the sender's in a 1:1 chat, the group's in a group. */
  chat: string;
  /** The sender inside a group; null in a 1:1 chat. */
  participant: string | null;
  /** Sent by the line's owner from the phone or another device. */
  fromMe: boolean;
  /** Digits of the real sender, resolved through attributes or the mapping store; null where the network never gave it. */
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
  /** Where the chat came from, as far as the network says: an ad, a link. */
  ad: Record<string, string> | null;
  /** What it does to an earlier message in place of saying something itself; null as a rule. */
  change: IncomingChange | null;
  /** Type-specific content that the envelope has no field for (location, contacts, poll, reaction target, …). */
  details: Record<string, unknown> | null;
  /** True for a message that could not be decrypted and whose retry failed too. */
  undecryptable: boolean;
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
  /** `byAdmin`: the sender is admin of the group, who may delete what others wrote. */
  | { kind: "deleted"; target: string; byAdmin: boolean }
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

export interface Recalled extends Pick<Incoming, "chat" | "participant" | "fromMe" | "number"> {
  /** As what it can be sent on; null when it cannot. */
  kind: ForwardableKind | null;
  text: string | null;
  caption: string | null;
  filename: string | null;
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
