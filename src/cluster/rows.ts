/** The rows by which processes share work: who is there, who holds what, and what one asks of another. */
import { key, prefix } from "../store/kv.ts";

export interface MemberRow {
  /** Grows with every renewal. */
  beat: number;
  /** How many leases of each kind it holds. */
  held: Readonly<Record<string, number>>;
  /** It gives its leases up and takes no more. */
  leaving: boolean;
  /** Members that it has seen to be silent, by their ids: since which version of their rows, and for how long, ms. */
  silent: Readonly<Record<string, Silence>>;
}

export interface Silence {
  version: string;
  ms: number;
}

export interface LeaseRow {
  /** A member's id; "" for nobody. */
  holder: string;
  /** Grows with every move. */
  fence: number;
}

/** What a process asks of whoever holds the lease. */
export interface CallRow {
  /** Who is answered. */
  caller: string;
  method: string;
  /** A list, serialised and sealed. */
  args: Uint8Array;
  /** Unix ms. */
  askedAt: number;
}

/** An error as its asker knows how to make it again. */
export interface WrittenError {
  name: string;
  message: string;
  code?: number | string | null;
  retryAfterSeconds?: number;
}

export type AnswerRow =
  /** The value is serialised and sealed. */
  | { ok: true; value: Uint8Array; at: number }
  | { ok: false; error: WrittenError; at: number };

export const clusterKeys = {
  /** A process that holds leases, for as long as it renews this row. */
  member: (id: string) => key<MemberRow>("member", id),
  members: () => prefix<MemberRow>("member"),
  /** A member that was declared dead, or left, until its leases are somebody else's. */
  departed: (id: string) => key<true>("member_departed", id),
  departeds: () => prefix<true>("member_departed"),
  /** Whose a thing is; checked by every commit that its holder makes for it. */
  lease: (kind: string, thing: string) => key<LeaseRow>("lease", kind, thing),
  leases: (kind: string) => prefix<LeaseRow>("lease", kind),
  /** What each holder has, "" for what is free. */
  held: (kind: string, holder: string, thing: string) => key<true>("lease_held", kind, holder, thing),
  heldBy: (kind: string, holder: string) => prefix<true>("lease_held", kind, holder),
  call: (thing: string, callId: string) => key<CallRow>("call", thing, callId),
  calls: () => prefix<CallRow>("call"),
  answer: (caller: string, callId: string) => key<AnswerRow>("call_answer", caller, callId),
  answers: () => prefix<AnswerRow>("call_answer"),
};
