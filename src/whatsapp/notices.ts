/** What happens on the network beside messages, as the port tells it. */
import type { Group, GroupMember, GroupSettings } from "./groups.ts";

/** The group as it is now; only its id where the network does not tell the line any more. */
export type GroupNow = { id: string } & Partial<Group & GroupSettings>;

export type MembersChange = "add" | "remove" | "promote" | "demote" | "leave";

export type Notice =
  & {
    /** Names it: the same each time that the network tells it. Null for what the network tells once, whoever hears it. */
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
