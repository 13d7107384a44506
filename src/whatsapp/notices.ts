/** What happens on the network beside messages, as the port reports it. */
import type { Group, GroupMember, GroupSettings } from "./groups.ts";

/** The group as it is now; only its id where the network no longer lets the line know. */
export type GroupNow = { id: string } & Partial<Group & GroupSettings>;

export type MembersChange = "add" | "remove" | "promote" | "demote" | "leave";

export type Notice =
  & {
    /** Names it: the same each time that the network reports it. Null for what it reports once, whoever hears it. */
    id: string | null;
    /** JID of the chat that it is about. */
    chat: string;
  }
  & (
    | { kind: "call"; callId: string; number: string | null; video: boolean }
    | { kind: "group"; group: GroupNow }
    | { kind: "members"; group: GroupNow; action: MembersChange; participants: Omit<GroupMember, "isAdmin">[] }
    | { kind: "presence"; number: string | null; state: PresenceState }
  );

export const PRESENCE_STATES = ["online", "offline", "typing", "recording", "paused"] as const;
export type PresenceState = (typeof PRESENCE_STATES)[number];
