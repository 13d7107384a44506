/**
 * The part of the port for people and chats, including the line's owner. Every call throws NetworkRefusal, with the
 * network's code if it gave one, or NetworkTimeout.
 */

export interface NumberCheck {
  exists: boolean;
  /** `<number>@s.whatsapp.net`, in its canonical form if the network corrected the number. */
  jid: string;
}

/** What the network reveals about a number. Privacy settings may hide any field, which is then null. */
interface ContactCard {
  exists: boolean;
  jid: string;
  lid: string | null;
  /** The push name in the person's last message on this connection; null before the first. */
  name: string | null;
  about: string | null;
  /** A link to the network's media host, valid for a few days. */
  pictureUrl: string | null;
  business: BusinessCard | null;
}

export interface BusinessCard {
  description: string | null;
  category: string | null;
  address: string | null;
  email: string | null;
  websites: string[];
}

interface OwnProfile {
  name: string | null;
  about: string | null;
  pictureUrl: string | null;
}

interface ProfileChange {
  name?: string;
  about?: string;
  /** A square JPEG; null removes the picture. */
  picture?: Uint8Array | null;
}

export interface Contacts {
  card(number: string): Promise<ContactCard>;
  block(number: string): Promise<void>;
  unblock(number: string): Promise<void>;
  /** `number` is null if only the LID is known. */
  blocklist(): Promise<{ jid: string; number: string | null }[]>;
  profile(): Promise<OwnProfile>;
  changeProfile(change: ProfileChange): Promise<void>;
}

export type ChatState = "typing" | "recording" | "paused";

export interface ReadMessage {
  /** As named in the message's event. */
  chat: string;
  networkId: string;
  /** JID of the author in a group; null in a 1:1 chat. */
  participant: string | null;
}

export interface Chats {
  /** Shows the line's chat state to the other side and subscribes to theirs. The network does not acknowledge it. */
  show(chat: string, state: ChatState): Promise<void>;
  /**
   * The JIDs by which events may have named a chat: for a person, both number and LID, as far as the line knows them.
   */
  namesOf(chat: string): Promise<string[]>;
  /** Sends read receipts for the messages. */
  read(messages: readonly ReadMessage[]): Promise<void>;
}
