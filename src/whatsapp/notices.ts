/** Events on the network other than messages, as the port reports them. */
import type { Group, GroupMember, GroupSettings } from "./groups.ts";

/** The group in its current state; only its id if the line no longer has access to it. */
export type GroupNow = { id: string } & Partial<Group & GroupSettings>;

export type MembersChange = "add" | "remove" | "promote" | "demote" | "leave";

export type Notice =
  & {
    /**
     * Identifies the notice: the same each time the network reports it. Null for a notice that the network sends only
     * once, received or not.
     */
    id: string | null;
    /** JID of the chat it concerns. */
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
