/** Outgoing messages as the port takes them, and the outcomes of an attempt to send. */
import type { Change } from "../store/kv.ts";

export interface Outgoing {
  networkId: string;
  /** Digits, or a JID (`…@s.whatsapp.net`, `…@lid`, `…@g.us`). */
  to: string;
  body: OutgoingBody;
  manner?: Manner;
}

export type OutgoingBody =
  | { kind: "text"; text: string }
  | {
    kind: FileKind;
    /** Path of the file on disk. */
    path: string;
    size: number;
    filename: string;
    mimetype: string;
    caption: string | null;
  }
  | { kind: "location"; latitude: number; longitude: number; name: string | null; address: string | null }
  /** Phone numbers are digits. */
  | { kind: "contact"; contacts: ContactCard[] }
  | { kind: "poll"; question: string; options: string[]; multiple: boolean }
  /** Options to tap. */
  | {
    kind: "menu";
    style: "buttons" | "list";
    text: string;
    footer: string | null;
    options: { id: string; label: string; description: string | null }[];
  }
  /** An empty emoji removes the reaction. */
  | { kind: "reaction"; emoji: string; target: MessageKey }
  /** Forwards a stored message that this or another line sent or received. `preview` has its current words. */
  | { kind: "forward"; source: { lineId: string; networkId: string }; preview: Words }
  /** Changes a text that the line sent to this chat. `target` is its network id. */
  | { kind: "edit"; target: string; text: string }
  /**
   * Deletes a message of the chat for everyone. As an admin of a group, the line may delete other members' messages
   * too.
   */
  | { kind: "revoke"; target: MessageKey }
  /** A status post for these numbers only. The message's `to` is `STATUS_CHAT`. */
  | { kind: "status"; of: PostedBody; audience: readonly string[] };

/** The words of a message: its text, or the caption of its file. */
export interface Words {
  text: string | null;
  caption: string | null;
}

/** How the recipient sees a file. */
export interface ContactCard {
  name: string;
  /** Digits; empty if there is none. */
  phone: string;
  organization: string | null;
  /** Lines of the vCard, in place of those that name, phone and organization make. */
  lines?: string[];
}

export type FileKind = "image" | "video" | "audio" | "document" | "sticker" | "voice";

/** The kinds that can be forwarded. */
export type ForwardableKind = FileKind | "text" | "location" | "contact";

export type FileBody = Extract<OutgoingBody, { kind: FileKind }>;

/** What can be posted as a status. */
export type PostedBody = Extract<OutgoingBody, { kind: "text" }> | FileBody;

/** The address of status posts. */
export const STATUS_CHAT = "status@broadcast";

/** Options of a message besides its content. All are off unless given. */
export interface Manner {
  /**
   * The message of the chat being replied to, and the text to show for it if the network's own copy is no longer
   * stored.
   */
  quote?: MessageKey & { chat: string; text: string | null };
  /** JIDs or digits; "all" for everybody in the group. */
  mentions?: readonly string[] | "all";
  /** For an image, video or audio: it can be opened once. */
  viewOnce?: true;
  preview?: LinkPreview;
}

/** The preview of a link in a text. */
export interface LinkPreview {
  /** Exactly as it appears in the text. */
  url: string;
  title: string;
  description: string | null;
  /** The bytes of an image file. */
  picture: Uint8Array | null;
}

/** Identifies a message within its chat. */
export interface MessageKey {
  networkId: string;
  /** JID of its author in a group; null in a 1:1 chat, and for the line's own messages. */
  participant: string | null;
  fromMe: boolean;
}

/** A message that can leave at once, or the reason why it cannot. */
export type Prepared =
  | {
    kind: "ready";
    /**
     * Adds to the commit of its departure what has to be on disk by then: the copy from which retry receipts are
     * answered.
     */
    keep(change: Change): void;
    /** Shows "typing" in the chat until the message arrives. Never throws. */
    type(): void;
    /**
     * Does in advance what can be done before `send`, which follows in a moment. Resolves when the rows for that wait for
     * the flush of the departure. Never rejects.
     */
    leavesNext(): Promise<void>;
    /** Sends it, once, under its network id, and waits for the server's ack. Never throws. */
    send(): Promise<SendOutcome>;
  }
  | Unsent;

/** The outcome of one attempt. `hold` and `restricted` do not count as an attempt; the others do. */
export type SendOutcome =
  | { kind: "sent"; chat: string }
  /** The network refused it for good, or the message itself is invalid. */
  | { kind: "refused"; code: string; detail: string }
  /** It certainly did not leave; another attempt may work (the media upload or the key query failed, for example). */
  | { kind: "retry"; detail: string }
  /** Not connected: nothing was tried. */
  | { kind: "hold"; detail: string }
  /** The account may start no new chats for now: the message waits until it may, and is not retried before. */
  | { kind: "restricted"; detail: string }
  /** It may have left, but no ack came: sent again with the same id after the reconnect. */
  | { kind: "unknown"; detail: string };

/** The outcomes of an attempt that certainly did not reach the network as a message. */
export type Unsent = Extract<SendOutcome, { kind: "refused" | "retry" | "hold" }>;
