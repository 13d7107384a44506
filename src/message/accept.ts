/** Accepting sends: ONE commit with message, queue row, quota, idempotency and history (promise 1), then 202. */
import type { Caller } from "../account/account.ts";
import type { Line } from "../line/line.ts";
import type { Message } from "./message.ts";
import type { OutgoingContent } from "./content.ts";

export interface SendCommand {
  caller: Caller;
  line: Line;
  /** One for a single send; up to 10,000 for a bulk, accepted all or none. */
  items: readonly { to: string; content: OutgoingContent }[];
  bulk: boolean;
  /** How long each may wait, milliseconds. */
  ttlMs: number;
  /** Answer kept under the client's Idempotency-Key, in the same commit; null without one. */
  idempotency: { key: string; fingerprint: string } | null;
}

export interface Accepted {
  messages: readonly Pick<Message, "id" | "jobId" | "to" | "status">[];
  /** What is left after this send; null where the plan sets no limit. */
  remaining: QuotaLeft;
}

export interface QuotaLeft {
  daily: number | null;
  monthly: number | null;
}

/** Throws Problem quota_exceeded (with `remaining`), idempotency_key_reused. */
export type Accept = (command: SendCommand) => Promise<Accepted>;
