/** What a send is: what it asks for, its preconditions, how it is accepted or not, and its repetition. */
import type { Caller } from "../account/account.ts";
import type { Idempotency, RepeatableRequest } from "../account/idempotency.ts";
import type { QuotaLeft } from "../account/quota.ts";
import type { Kv, Slot } from "../store/kv.ts";
import type { OutgoingContent } from "./content.ts";
import { ledgerOf, messageIds, messagesOf, sequence } from "./history/ledger.ts";
import type { Message, Priority, SendManner } from "./message.ts";

/** A row that a commit checks: what was decided by it holds as long as its version is the same. */
export type Precondition = Pick<Slot<unknown>, "key" | "version">;

export interface SendItem {
  to: string;
  content: OutgoingContent;
  manner?: SendManner | undefined;
}

export interface SendCommand {
  caller: Caller;
  /** The line that it goes out on, and the row that says that it can. */
  line: { id: string; row: Precondition };
  /** One for a single send; up to 10,000 for a bulk, accepted all or none. */
  items: readonly SendItem[];
  bulk: boolean;
  /** How long each message may wait, from `sendAt` where that is given, milliseconds. */
  ttlMs: number;
  /** None leaves before this time; null: as soon as its turn comes. */
  sendAt: number | null;
  priority: Priority;
  /** Answer kept under the client's Idempotency-Key, in the same commit; null without one. */
  idempotency: { key: string; fingerprint: string } | null;
}

export interface Accepted {
  /** Null for a single send. */
  bulkId: string | null;
  /** True when this is the answer that an earlier send with the same Idempotency-Key got: nothing was accepted now. */
  replayed: boolean;
  messages: readonly Pick<Message, "id" | "jobId" | "to" | "status">[];
  /** What is left after this send; null where the plan sets no limit. */
  remaining: QuotaLeft;
}

/** The row of the line has changed since it was read: read it again, it may be no line to send from any more. */
export class LineChanged extends Error {
  override name = "LineChanged";
}

/** What must still hold when the send is committed: the line can send, and the key, where it was remembered, is valid. */
export function preconditionsOf({ caller, line }: SendCommand): Precondition[] {
  return caller.keyRow ? [line.row, caller.keyRow] : [line.row];
}

/** The acknowledgement of a message: `queued`, whatever became of it since (spec). */
export function acknowledge({ id, jobId, to }: Message): Accepted["messages"][number] {
  return { id, jobId, to, status: "queued" };
}

/** What is kept under the key: which messages were the answer, by history number. */
export interface KeptSend {
  first: number;
  count: number;
  remaining: QuotaLeft;
}

/**
 * The answer that a send got first, for one that is repeated under its `Idempotency-Key`. Null when the send is not a repetition. Asked before anything else of a send is looked at: its session may be gone by
 * now. Throws Problem idempotency_key_reused.
 */
export async function findReplay(
  { kv, idempotency }: { kv: Kv; idempotency: Pick<Idempotency, "find"> },
  request: RepeatableRequest,
): Promise<Accepted | null> {
  const kept = await idempotency.find<KeptSend>(request);
  if (kept === null) return null;
  // Read after the answer was found, so that it knows the answer's messages.
  const { accountId } = request;
  const ledger = await ledgerOf(kv, accountId);
  const numbers = sequence(kept.first, kept.first + kept.count - 1);
  const messages = await messagesOf(kv, await messageIds(kv, { accountId, ledger }, numbers));
  const bulkId = messages[0]?.bulkId ?? null;
  return { bulkId, replayed: true, messages: messages.map(acknowledge), remaining: kept.remaining };
}
