/** Messages on their way out, as the port takes them, and what becomes of an attempt. */
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

/** As what a file arrives. */
export type FileKind = "image" | "video" | "audio" | "document" | "sticker" | "voice";

/** What can be sent on. */
export type ForwardableKind = FileKind | "text" | "location" | "contact";

/** What can be posted. */
export type PostedBody = Extract<OutgoingBody, { kind: "text" | "image" | "video" | "audio" | "voice" }>;

export type FileBody = Extract<OutgoingBody, { kind: FileKind }>;

/** Where status posts go. */
export const STATUS_CHAT = "status@broadcast";

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

/** Names a message within its chat. */
export interface MessageKey {
  networkId: string;
  /** Its author in a group, a JID; null in a 1:1 chat, and of the line's own. */
  participant: string | null;
  fromMe: boolean;
}

/** A message that can leave at once, or why it cannot. */
export type Prepared =
  | {
    kind: "ready";
    /** Adds to the commit of its departure what has to be on disk by then: a copy for receivers who ask for it again. */
    keep(change: Change): void;
    /** Shows the chat that somebody types, until the message is there. Never throws. */
    type(): void;
    /** Does now what else can be done before `send`, which follows in a moment. Never throws. */
    leavesNext(): void;
    /** Sends it, once, under its network id and waits for the server's ack. Never throws. */
    send(): Promise<SendOutcome>;
  }
  | Unsent;

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

/** The outcomes of an attempt that surely did not reach the network as a message. */
export type Unsent = Extract<SendOutcome, { kind: "refused" | "retry" | "hold" }>;
