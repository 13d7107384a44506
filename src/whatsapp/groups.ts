/**
 * The part of the port that is about groups. Every call throws NetworkRefusal, with the network's code where it gave one
 * (403: not for this line; 404: no such group), or NetworkTimeout.
 */

/** Whether a chat is a group, by its JID. */
export function isGroup(chat: string): boolean {
  return chat.endsWith("@g.us");
}

/** As the list shows it. */
export interface Group {
  /** `…@g.us`. */
  id: string;
  name: string;
  description: string;
  /** How many participants. */
  size: number;
  /** Whether the line is admin. */
  isAdmin: boolean;
  /** Unix ms. */
  createdAt: number;
}

export interface GroupMember {
  /** As the group's members see each other: `…@lid` in groups of today. */
  id: string;
  /** Digits; null where the network does not say. */
  number: string | null;
  isAdmin: boolean;
}

/** What an admin can set. */
export interface GroupSettings {
  name: string;
  description: string;
  /** Only admins write. */
  announce: boolean;
  /** Only admins change name, description, picture and settings. */
  locked: boolean;
  /** Seconds after which messages disappear; 0: never. */
  ephemeral: number;
}

export interface WholeGroup extends Group, GroupSettings {
  participants: GroupMember[];
}

type MemberAction = "add" | "remove" | "promote" | "demote";
type RequestAction = "approve" | "reject";

/** What became of one member; `number` as it was given, `error` null when it is done. */
export interface MemberResult {
  number: string;
  error: { code: string; message: string } | null;
}

/** Participants are given as digits or as JIDs of persons. */
export interface Groups {
  list(): Promise<Group[]>;
  get(id: string): Promise<WholeGroup>;
  /** Somebody whom the network does not let in is no error of the whole. */
  create(name: string, participants: readonly string[]): Promise<{ group: WholeGroup; results: MemberResult[] }>;
  /** One query a field, in the order of `GroupSettings`: a refusal leaves those before it done. */
  change(id: string, settings: Partial<GroupSettings>): Promise<void>;
  /** A square JPEG; null takes the picture away. */
  setPicture(id: string, jpeg: Uint8Array | null): Promise<void>;
  leave(id: string): Promise<void>;
  changeMembers(id: string, action: MemberAction, participants: readonly string[]): Promise<MemberResult[]>;
  /** The invitation, a link. */
  invite(id: string): Promise<string>;
  /** Ends the invitation; resolves to the new one. */
  renewInvite(id: string): Promise<string>;
  /** Follows an invitation (link or code). `asked`: an admin has to let the line in. */
  join(invite: string): Promise<{ id: string; status: "joined" | "asked" }>;
  /** Those who wait to be let in. */
  requests(id: string): Promise<Omit<GroupMember, "isAdmin">[]>;
  answerRequests(id: string, action: RequestAction, participants: readonly string[]): Promise<MemberResult[]>;
}
