/** A phone of the network as its owner uses it. */
import type { Device } from "./device.ts";
import type { ChatState, InboxItem } from "./inbox.ts";
import type { AssertionJson, CodeAnswer, ExportedPasskey, LinkAnswer, PasskeyState } from "./linking.ts";

/** A simulated phone as the control API drives it; `phone/phone.ts` makes it. Throws Problem for bad input. */
export interface Phone extends Device {
  /** Digits. */
  readonly number: string;
  readonly name: string;
  /** Reads a QR, raw text or PNG data URL, as its owner would. */
  scan(qr: string): Promise<LinkAnswer>;
  /** Types the code that a companion shows. */
  enterCode(code: string): Promise<CodeAnswer>;
  /** The link with a passkey that is under way, or null. */
  passkeyState(): PasskeyState | null;
  /** Signs WebAuthn request options, as the owner's browser would. Throws Problem not_found without a passkey. */
  signPasskey(options: unknown): AssertionJson;
  /** The owner sees the same code on the companion. Throws Problem not_found when no code is shown. */
  confirmPasskey(): void;
  /** Throws Problem not_found without a passkey. */
  exportPasskey(): ExportedPasskey;
  /** Encrypts and sends; resolves when the network has accepted it. */
  sendMessage(message: PhoneMessage): Promise<{ id: string }>;
  /** What it decrypted, oldest first. */
  inbox(): InboxItem[];
  /** Sends the read receipt of a message in the inbox. Throws Problem not_found. */
  read(messageId: string): void;
  /** Votes on a poll in the inbox, by the names of options. Throws Problem not_found or validation_failed. */
  vote(messageId: string, options: readonly string[]): Promise<{ id: string }>;
  /** Reacts to a message in the inbox; an empty emoji takes it back. Throws Problem not_found. */
  react(messageId: string, emoji: string): Promise<{ id: string }>;
  /** Changes the text of a message that this phone sent. Throws Problem not_found. */
  edit(messageId: string, text: string): Promise<{ id: string }>;
  /** Deletes a message that this phone sent, for everyone. Throws Problem not_found. */
  revoke(messageId: string): Promise<{ id: string }>;
  /** Shows that its owner is typing in a chat, or has stopped. */
  setTyping(to: string, state: "typing" | "recording" | "paused"): void;
  /** Calls; nobody has to answer. */
  call(to: string, options: { video: boolean }): { callId: string };
  /** What it saw others do in chats, oldest first. */
  chatStates(): ChatState[];
  /** Resolves when everything delivered so far has been processed. */
  idle(): Promise<void>;
}

export const FILE_KINDS = ["image", "video", "audio", "document", "sticker"] as const;
export type PhoneFileKind = (typeof FILE_KINDS)[number];

/** What a phone can be told to send. `to`: digits, or a jid of a user or a group. */
export type PhoneMessage =
  & { to: string; hideNumber?: boolean }
  & (
    | { text: string }
    /** `file` is base64. */
    | { file: string; kind?: PhoneFileKind; filename?: string; mimetype?: string; caption?: string }
    /** A WhatsApp protobuf Message as JSON. */
    | { message: Record<string, unknown> }
  );
