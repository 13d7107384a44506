/**
 * Breaks one call: of a store, which is refused, has an unknown result, comes late, or ends the process; of what answers
 * webhooks and serves files; or of the disk.
 */
import { EgressError } from "../../src/egress/egress_error.ts";
import type { SafeFetch } from "../../src/egress/safe_fetch.ts";
import { type Change, StoreError } from "../../src/store/kv.ts";
import type { MemoryKv } from "../../tests/support/memory_kv.ts";
import { settle } from "../../tests/support/runtime.ts";

/**
 * `refused`: the call does nothing and throws. `unknown`: a commit is written, and throws, as where the answer was lost.
 * `late`: the call waits until all other work rests. `ends`: the process dies before a commit, and another one begins on what is on disk.
 */
export const FAULTS = ["refused", "unknown", "late", "ends"] as const;
/** `unreachable`: the request does not get there. `unanswered`: it does, and its answer is lost. `torn`: so is the end of its body. */
export const WEB_FAULTS = ["unreachable", "unanswered", "torn"] as const;
/** What the system answers; `killed`: the process is. `full`: from the call on nothing can be written, until there is room again. */
export const DISK_FAULTS = ["ENOSPC", "EIO", "killed", "full"] as const;
/** The store's, and that of a full disk under it. */
export const STORE_FAULTS = [...FAULTS, "full"] as const;
type WebFault = typeof WEB_FAULTS[number];
export type DiskFault = typeof DISK_FAULTS[number];
/** `short`: a write takes half of its bytes. `dies`: the process does, after the call. */
type PlaceFault = "short" | "dies";
export type Fault = typeof FAULTS[number] | WebFault | DiskFault | PlaceFault;

export function isOfWeb(fault: Fault): fault is WebFault {
  return (WEB_FAULTS as readonly Fault[]).includes(fault);
}

export interface Calls {
  /** How many there were; of commits alone for `unknown` and `ends`, of writes for `full`. */
  count: number;
  /** Ends the fault. */
  mend(): void;
  /** There is room again on a full disk. */
  makeRoom?(): void;
  /** Another process begins, after one that died in the middle of a call. */
  begin?(): void;
}

/** Counts the calls from now on and breaks the n-th, from 1; none if `n` is 0. */
export function breakCall(kv: MemoryKv, fault: Fault, n: number): Calls {
  const { get, getMany, list, commit } = kv;
  const calls: Calls = { count: 0, mend: () => void Object.assign(kv, { get, getMany, list, commit }) };
  const error = () => new StoreError("unavailable", `call ${n} was broken`);

  const counted =
    <Given extends unknown[], Answer>(call: (...given: Given) => Promise<Answer>) =>
    async (...given: Given): Promise<Answer> => {
      if (++calls.count !== n) return await call(...given);
      if (fault === "refused") throw error();
      await settle();
      return await call(...given);
    };

  if (fault === "unknown" || fault === "ends") {
    kv.commit = async (change: Change) => {
      const isBroken = ++calls.count === n;
      if (isBroken && fault === "ends") kv.commitsLeft = 0;
      const version = await commit(change);
      if (isBroken) throw error();
      return version;
    };
    return calls;
  }
  if (fault === "full") {
    let isFull = true;
    calls.makeRoom = () => void (isFull = false);
    kv.commit = async (change: Change) => {
      if (++calls.count >= n && n > 0 && isFull) throw new StoreError("full", `there is no room from call ${n} on`);
      return await commit(change);
    };
    return calls;
  }
  kv.get = counted(get) as typeof get;
  kv.getMany = counted(getMany) as typeof getMany;
  kv.commit = counted(commit);
  kv.list = ((...given: Parameters<typeof list>) => {
    const rows = counted(() => Promise.resolve(list(...given)));
    return (async function* () {
      yield* await rows();
    })();
  }) as typeof list;
  return calls;
}

/** As `breakCall`, for requests. */
export function breakRequest(web: Pick<SafeFetch, "fetch">, fault: WebFault, n: number): Calls {
  const { fetch } = web;
  const calls: Calls = { count: 0, mend: () => void (web.fetch = fetch) };
  web.fetch = async (request) => {
    if (++calls.count !== n) return await fetch(request);
    if (fault === "unreachable") throw new EgressError("unreachable", `request ${n} was broken`);
    const answer = await fetch(request);
    if (fault === "unanswered") throw new EgressError("timeout", `the answer to request ${n} was broken`);
    const torn = () => {
      throw new EgressError("bad_response", `the body of answer ${n} was broken`);
    };
    const body = answer.body.pipeThrough(new TransformStream({ transform: torn, flush: torn }));
    return { ...answer, body, discard: () => body.cancel() };
  };
  return calls;
}
