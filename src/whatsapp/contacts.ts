/**
 * The part of the port that is about people and chats, the line's owner included. Every call throws NetworkRefusal, with
 * the network's code where it gave one, or NetworkTimeout.
 */

export interface NumberCheck {
  exists: boolean;
  /** `<number>@s.whatsapp.net`; the canonical one where the network corrected it. */
  jid: string;
}

/** What the network says of a number. Privacy settings may hide any of it: it is null then. */
interface ContactCard {
  exists: boolean;
  jid: string;
  lid: string | null;
  /** As a business is verified, else as they called themselves when they last wrote on this connection. */
  name: string | null;
  about: string | null;
  /** On the network's media host, for some days. */
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
  /** A square JPEG; null takes the picture away. */
  picture?: Uint8Array | null;
}

export interface Contacts {
  card(number: string): Promise<ContactCard>;
  block(number: string): Promise<void>;
  unblock(number: string): Promise<void>;
  /** `number` is null where only the LID is known. */
  blocklist(): Promise<{ jid: string; number: string | null }[]>;
  profile(): Promise<OwnProfile>;
  changeProfile(change: ProfileChange): Promise<void>;
}

export type ChatState = "typing" | "recording" | "paused";

export interface ReadMessage {
  /** As the message's event named it. */
  chat: string;
  networkId: string;
  /** JID of the author, in a group. */
  participant: string | null;
}

export interface Chats {
  /** What the other side sees of the line now; asks to hear of theirs. Not acknowledged by the network. */
  show(chat: string, state: ChatState): Promise<void>;
  /** The JIDs by which events may have named a chat: a person's by number and by LID, as far as the line knows them. */
  namesOf(chat: string): Promise<string[]>;
  /** Tells that messages were read. */
  read(messages: readonly ReadMessage[]): Promise<void>;
}
