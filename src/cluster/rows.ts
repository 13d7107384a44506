/** The rows by which processes share work: members, leases, and calls between processes. */
import { key, prefix } from "../store/kv.ts";

export interface MemberRow {
  /** Incremented by every renewal. */
  beat: number;
  /** Number of leases held, by kind. */
  held: Readonly<Record<string, number>>;
  /** Whether it is releasing its leases and takes no more. */
  leaving: boolean;
  /** Members that it has observed to be silent, by id: the version of their rows, and for how long, ms. */
  silent: Readonly<Record<string, Silence>>;
}

export interface Silence {
  version: string;
  ms: number;
}

export interface LeaseRow {
  /** The member's id; "" if the lease is free. */
  holder: string;
  /** The fencing token, incremented by every move. */
  fence: number;
}

/** A call to the holder of a lease. */
export interface CallRow {
  /** Where the answer goes. */
  caller: string;
  method: string;
  /** The argument list, serialised and sealed. */
  args: Uint8Array;
}

/** A serialised error, which the caller can recreate. */
export interface WrittenError {
  name: string;
  message: string;
  code?: number | string | null;
  retryAfterSeconds?: number;
}

export type AnswerRow =
  /** `value` is serialised and sealed. */
  | { ok: true; value: Uint8Array }
  | { ok: false; error: WrittenError };

export const clusterKeys = {
  /** A process that may hold leases, as long as it renews this row. */
  member: (id: string) => key<MemberRow>("member", id),
  members: () => prefix<MemberRow>("member"),
  /** A member that left or was declared dead; removed once all its leases have been taken. */
  departed: (id: string) => key<true>("member_departed", id),
  departeds: () => prefix<true>("member_departed"),
  call: (thing: string, callId: string) => key<CallRow>("call", thing, callId),
  calls: () => prefix<CallRow>("call"),
  answer: (caller: string, callId: string) => key<AnswerRow>("call_answer", caller, callId),
  answers: () => prefix<AnswerRow>("call_answer"),
};

/** The keys of the leases on things of one kind. */
export const leaseKeys = (kind: string) => ({
  /** The holder of a thing; checked by every commit that the holder makes for it. */
  lease: (thing: string) => key<LeaseRow>("lease", kind, thing),
  leases: () => prefix<LeaseRow>("lease", kind),
  /** Index of leases by holder; "" for free ones. */
  held: (holder: string, thing: string) => key<true>("lease_held", kind, holder, thing),
  heldBy: (holder: string) => prefix<true>("lease_held", kind, holder),
});
