/** What arrives from the network: messages, receipts for messages that were sent, and notices of other events. */
import type { ForwardableKind } from "./outgoing.ts";
import type { Group, GroupMember, GroupSettings } from "./chats.ts";

export interface Incoming {
  networkId: string;
  /** Chat JID: the other person's in a 1:1 chat, the group's in a group. */
  chat: string;
  /** The sender inside a group; null in a 1:1 chat. */
  participant: string | null;
  /** True if the line's owner sent it from the phone or another device. */
  fromMe: boolean;
  /**
   * Digits of the real sender, taken from the stanza's attributes or the mapping store; null if the network never gave
   * them.
   */
  number: string | null;
  pushName: string | null;
  /** The sender's username, without an @; left out if the network tells none. */
  username?: string;
  /** Unix seconds. */
  timestamp: number;
  type: IncomingType;
  text: string | null;
  media: IncomingMedia | null;
  /** The message being replied to. */
  quoted: Quoted | null;
  /** JIDs of the people mentioned. The line itself is named by its number. */
  mentions: readonly string[];
  isForwarded: boolean;
  /** A view-once message. The network may withhold its file from linked devices. */
  viewOnce: boolean;
  /** Where the chat came from (an ad, a link), as far as the network says. */
  ad: Record<string, string> | null;
  /**
   * The edit, deletion or vote that this message makes to an earlier one. Null for a message with content of its own.
   */
  change: IncomingChange | null;
  /** Type-specific content that the envelope has no field for (location, contacts, poll, reaction target, …). */
  details: Record<string, unknown> | null;
  /** True for a message that could not be decrypted, and whose retry failed as well. */
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

/** The message that another one replies to. */
export interface Quoted {
  /** Network id. */
  messageId: string;
  /** Whether the line sent it. */
  fromMe: boolean;
  /** JID of the author, if the network names it. */
  participant: string | null;
  /** The text shown in a preview. */
  text: string | null;
  /** Present if it is a status post. */
  status?: true;
}

/** An edit, a deletion or a vote. `target` is the network id of the message that it applies to. */
export type IncomingChange =
  | { kind: "edited"; target: string; text: string | null }
  /** `byAdmin`: the sender is an admin of the group, who may delete other members' messages. */
  | { kind: "deleted"; target: string; byAdmin: boolean }
  /** The voter's whole current selection; empty when the vote is withdrawn. */
  | { kind: "vote"; target: string; options: readonly string[] };

export interface IncomingMedia {
  mimetype: string;
  /** Original filename of a document; null for other kinds. */
  filename: string | null;
  /** Size in bytes as claimed by the sender; null if none is given. */
  size: number | null;
  /**
   * Downloads, decrypts and verifies the file as a stream; each call starts over. If the file is gone from the network,
   * asks the phone once to upload it again. Rejects, or errors the stream, with MediaTrouble if a later try may
   * succeed, and with MediaUnavailable if none will.
   */
  download(signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** The file of an incoming message can never be fetched: it is gone, was altered, or has no key. */
export class MediaUnavailable extends Error {
  override name = "MediaUnavailable";
}

/** The file of an incoming message can't be fetched now: the network or its media host has trouble that may pass. */
export class MediaTrouble extends Error {
  override name = "MediaTrouble";
}

export interface Recalled extends Pick<Incoming, "chat" | "participant" | "fromMe" | "number"> {
  /** The kind of message that is sent to forward it; null if it can't be forwarded. */
  kind: ForwardableKind | null;
  text: string | null;
  caption: string | null;
  filename: string | null;
}

export interface Receipt {
  networkId: string;
  /** Chat JID of the message. */
  chat: string;
  /** JID of the group member who received or read it; null in a 1:1 chat. */
  participant: string | null;
  status: "delivered" | "read";
  at: number;
}

/** The group in its current state; only its id if the line no longer has access to it. */
export type GroupNow = { id: string } & Partial<Group & GroupSettings>;

export type MembersChange = "add" | "remove" | "promote" | "demote" | "leave";

export type Notice =
  & {
    /**
     * Identifies the notice: the same each time the network reports it. Null for a notice that the network sends only
     * once, received or not.
     */
    id: string | null;
    /** JID of the chat it concerns. */
    chat: string;
  }
  & (
    | { kind: "call"; callId: string; number: string | null; video: boolean }
    | { kind: "group"; group: GroupNow }
    | { kind: "members"; group: GroupNow; action: MembersChange; participants: Omit<GroupMember, "isAdmin">[] }
    /** The owner has read the chat on the phone, up to the newest of these messages. */
    | { kind: "read"; networkIds: readonly string[] }
    | { kind: "presence"; number: string | null; state: PresenceState }
    /** The person of the chat has this username now (null: none), or this `@lid` in place of the chat's. */
    | { kind: "person"; username?: string | null; lid?: string }
    /** The line's own profile has changed elsewhere. */
    | { kind: "profile" }
  );

export const PRESENCE_STATES = ["online", "offline", "typing", "recording", "paused"] as const;
export type PresenceState = (typeof PRESENCE_STATES)[number];
