/** The messages that a phone has received, as its owner sees them. */

/** The parts of a message besides its text and file; null, false or empty if absent. */
export interface MessageDetails {
  /** The message that this one replies to, and the quoted text. */
  quoted: { id: string; text: string | null } | null;
  /** JIDs. */
  mentions: readonly string[];
  forwarded: boolean;
  viewOnce: boolean;
  location: { latitude: number; longitude: number; name: string | null; address: string | null } | null;
  contacts: { name: string; vcard: string }[] | null;
  poll: { question: string; options: string[]; multiple: boolean } | null;
  /** The message that is reacted to; an empty emoji removes the reaction. */
  reaction: { id: string; emoji: string } | null;
  linkPreview: { url: string; title: string | null; description: string | null; hasPicture: boolean } | null;
  /** Length and waveform of a voice note. */
  voice: { seconds: number; waveform: number[] } | null;
}

/** The content of a message, except its file. */
export interface MessageContent extends MessageDetails {
  /** Name of the protobuf field, such as `conversation` or `documentMessage`; `reaction` for a reaction. */
  type: string;
  text: string | null;
  caption: string | null;
  filename: string | null;
  mimetype: string | null;
  /** Whether the app plays this audio as a voice note. */
  voiceNote: boolean;
  /** The size stated in the message, known before the image is downloaded; null if the message states none. */
  imageSize: { width: number; height: number } | null;
  /** Whether the message carries a preview to show until the file is downloaded. */
  hasPreview: boolean;
}

/** What a phone sees somebody do in a chat, other than write. */
export interface ChatState {
  /** As in `InboxItem`. */
  from: string;
  chat: string;
  state: "typing" | "recording" | "paused";
  /** Unix ms. */
  timestamp: number;
}

export interface InboxItem extends MessageContent {
  id: string;
  /** Sender without device: `<number>@s.whatsapp.net` if the number is known, else the LID. */
  from: string;
  /** The group, or the peer of a 1:1 chat. */
  chat: string;
  fromMe: boolean;
  /** SHA-256 of the decrypted file, hex; null without a file, or if it could not be downloaded (see `mediaError`). */
  sha256: string | null;
  /** Size of the decrypted file in bytes. */
  size: number | null;
  mediaError: string | null;
  /** The network's time, Unix ms. */
  timestamp: number;
  /** How many times a message with this chat, sender and id arrived; those that led to a retry receipt do not count. */
  copies: number;
  /** Whether the sender has edited the text since; `text` is the new one. */
  edited: boolean;
  /** Whether the sender has deleted it for everyone. */
  revoked: boolean;
}
