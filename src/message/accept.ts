/** Accepting sends: ONE commit with message, queue row, quota, idempotency and history (promise 1), then 202. */
import type { Caller } from "../account/account.ts";
import type { Idempotency } from "../account/idempotency.ts";
import type { QuotaLeft } from "../account/quota.ts";
import type { Runtime } from "../runtime.ts";
import type { Kv, Slot } from "../store/kv.ts";
import { AcceptLane } from "./accept_lane.ts";
import type { OutgoingContent } from "./content.ts";
import type { Message } from "./message.ts";

export interface SendCommand {
  caller: Caller;
  /** The line that it goes out on, and the row that says that it can. */
  line: { id: string; row: Pick<Slot<unknown>, "key" | "version"> };
  /** One for a single send; up to 10,000 for a bulk, accepted all or none. */
  items: readonly { to: string; content: OutgoingContent }[];
  bulk: boolean;
  /** How long each may wait, milliseconds. */
  ttlMs: number;
  /** Answer kept under the client's Idempotency-Key, in the same commit; null without one. */
  idempotency: { key: string; fingerprint: string } | null;
}

export interface Accepted {
  /** Null for a single send. */
  bulkId: string | null;
  /** True for the first answer to a send that was repeated under its Idempotency-Key: nothing was accepted now. */
  repeated: boolean;
  messages: readonly Pick<Message, "id" | "jobId" | "to" | "status">[];
  /** What is left after this send; null where the plan sets no limit. */
  remaining: QuotaLeft;
}

/** The row of the line has changed since it was read: read it again, it may be no line to send from any more. */
export class LineChanged extends Error {
  override name = "LineChanged";
}

/** Throws Problem quota_exceeded (with `remaining`), idempotency_key_reused, api_key_invalid; LineChanged; StoreError. */
export type Accept = (command: SendCommand) => Promise<Accepted>;

export interface AcceptOptions {
  kv: Kv;
  runtime: Runtime;
  idempotency: Idempotency;
  /** Told after each commit which line has new work. */
  queued: (lineId: string) => void;
}

export function makeAccept(options: AcceptOptions): Accept {
  const lanes = new Map<string, AcceptLane>();
  return (command) => {
    const accountId = command.caller.account.id;
    let lane = lanes.get(accountId);
    if (!lane) lanes.set(accountId, lane = new AcceptLane(accountId, options));
    return lane.accept(command);
  };
}
