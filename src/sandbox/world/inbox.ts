/** What a phone has received, as its owner sees it. */

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
  state: "typing" | "recording" | "paused";
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
