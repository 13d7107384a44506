/**
 * The part of the port for people, groups and the line's owner. Every call throws NetworkRefusal, with the network's
 * code if it gave one (403: the line may not do this; 404: no such group), or NetworkTimeout.
 */

export interface NumberCheck {
  exists: boolean;
  /** `<number>@s.whatsapp.net`, in its canonical form if the network corrected the number. */
  jid: string;
}

/** What the network says of a username. */
interface UsernameCheck {
  exists: boolean;
  /** `…@lid`; null if nobody has it, or `needsKey`. */
  jid: string | null;
  /** Its owner lets only those find them who know the key. */
  needsKey: boolean;
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
  username: string | null;
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
  /** Looks a username up, which is given without an @. */
  find(username: string, key: string | null): Promise<UsernameCheck>;
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
  /**
   * Shows the line's chat state to the other side and subscribes to theirs; for a minute the line appears online. The
   * network does not acknowledge it.
   */
  show(chat: string, state: ChatState): Promise<void>;
  /**
   * The JIDs by which events may have named a chat: for a person, both number and LID, as far as the line knows them.
   */
  namesOf(chat: string): Promise<string[]>;
  /** Sends read receipts for the messages. */
  read(messages: readonly ReadMessage[]): Promise<void>;
}

/** Whether a chat is a group, judging by its JID. */
export function isGroup(chat: string): boolean {
  return chat.endsWith("@g.us");
}

/** A group as shown in the list. */
export interface Group {
  /** `…@g.us`. */
  id: string;
  name: string;
  description: string;
  /** Number of participants. */
  size: number;
  /** Whether the line is an admin. */
  isAdmin: boolean;
  /** Unix ms. */
  createdAt: number;
  /** Absent outside of communities. */
  community?: Community;
}

/** The community that a group is part of. */
interface Community {
  id: string;
  /** Whether it is the group in which the community's admins write to all. */
  isAnnouncement: boolean;
}

export interface GroupMember {
  /** The address by which members see each other: `…@lid` in present-day groups. */
  id: string;
  /** Digits; null if the network does not say. */
  number: string | null;
  /** Without an @; left out if the network tells none. */
  username?: string;
  isAdmin: boolean;
}

/** The settings that an admin can change. */
export interface GroupSettings {
  name: string;
  description: string;
  /** Only admins may write. */
  announce: boolean;
  /** Only admins may change the name, description, picture and settings. */
  locked: boolean;
  /** Seconds after which messages disappear; 0 for never. */
  ephemeral: number;
}

export interface WholeGroup extends Group, GroupSettings {
  participants: GroupMember[];
}

type MemberAction = "add" | "remove" | "promote" | "demote";
type RequestAction = "approve" | "reject";

/** The outcome for one member: `number` as the caller gave it, `error` null on success. */
export interface MemberResult {
  number: string;
  error: { code: string; message: string } | null;
}

/** Operations on groups. Participants are given as digits or as JIDs of persons. */
export interface Groups {
  list(): Promise<Group[]>;
  get(id: string): Promise<WholeGroup>;
  /** A participant whom the network rejects does not fail the whole call. */
  create(name: string, participants: readonly string[]): Promise<{ group: WholeGroup; results: MemberResult[] }>;
  /**
   * Sends one query per field, in the order of `GroupSettings`. If one is refused, the earlier ones remain in effect.
   */
  change(id: string, settings: Partial<GroupSettings>): Promise<void>;
  /** Sets the picture to a square JPEG; null removes it. */
  setPicture(id: string, jpeg: Uint8Array | null): Promise<void>;
  leave(id: string): Promise<void>;
  changeMembers(id: string, action: MemberAction, participants: readonly string[]): Promise<MemberResult[]>;
  /** Resolves to the invite link. */
  invite(id: string): Promise<string>;
  /** Revokes the invite link; resolves to the new one. */
  renewInvite(id: string): Promise<string>;
  /** Joins by an invite link or code. `asked`: an admin has to approve the request. */
  join(invite: string): Promise<{ id: string; status: "joined" | "asked" }>;
  /** The people waiting to be admitted. */
  requests(id: string): Promise<Omit<GroupMember, "isAdmin">[]>;
  answerRequests(id: string, action: RequestAction, participants: readonly string[]): Promise<MemberResult[]>;
}
