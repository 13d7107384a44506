/**
 * The part of the port for groups. Every call throws NetworkRefusal, with the network's code if it gave one (403: the
 * line may not do this; 404: no such group), or NetworkTimeout.
 */

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
}

export interface GroupMember {
  /** The address by which members see each other: `…@lid` in present-day groups. */
  id: string;
  /** Digits; null if the network does not say. */
  number: string | null;
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
