/** A send: the command, its preconditions, its size in a commit, its outcome and its idempotent replay. */
import type { Caller } from "../account/account.ts";
import type { Idempotency, RepeatableRequest } from "../account/idempotency.ts";
import type { QuotaLeft } from "../account/quota.ts";
import type { Kv, Slot } from "../store/kv.ts";
import { charactersIn, type OutgoingContent } from "./content.ts";
import { ledgerOf, messageIds, messagesOf, sequence } from "./history/ledger.ts";
import type { Message, Priority, SendManner } from "./message.ts";
import { COMMIT_LIMITS } from "../store/limits.ts";

/** A row that a commit checks: a decision based on the row holds as long as its version is the same. */
export type Precondition = Pick<Slot<unknown>, "key" | "version">;

export interface SendItem {
  to: string;
  content: OutgoingContent;
  manner?: SendManner | undefined;
}

export interface SendCommand {
  caller: Caller;
  /** The line that sends, and its row, by which it was found able to send. */
  line: { id: string; row: Precondition };
  /** One item for a single send; up to 10,000 for a bulk, which is accepted all or none. */
  items: readonly SendItem[];
  bulk: boolean;
  /** How long each message may wait, from `sendAt` or else from now, in milliseconds. */
  ttlMs: number;
  /** Earliest time of departure, Unix ms; null for as soon as the messages' turn comes. */
  sendAt: number | null;
  priority: Priority;
  /** The client's Idempotency-Key, under which the same commit keeps the answer; null without one. */
  idempotency: { key: string; fingerprint: string } | null;
}

export interface Accepted {
  /** Null for a single send. */
  bulkId: string | null;
  /** True if this is the answer to an earlier send with the same Idempotency-Key: nothing was accepted now. */
  replayed: boolean;
  messages: readonly Pick<Message, "id" | "jobId" | "to" | "status">[];
  /** The quota left after this send; null where the plan sets no limit. */
  remaining: QuotaLeft;
}

/** The row of the line has changed since it was read. Read it again: the line may no longer be able to send. */
export class LineChanged extends Error {
  override name = "LineChanged";
}

/** Returns the rows that must be unchanged at the commit: the line's, and the API key's if it came from a cache. */
export function preconditionsOf({ caller, line }: SendCommand): Precondition[] {
  return caller.keyRow ? [line.row, caller.keyRow] : [line.row];
}

/** Returns the acknowledgement of a message: `queued`, even if its status has changed since (spec). */
export function acknowledge({ id, jobId, to }: Message): Accepted["messages"][number] {
  return { id, jobId, to, status: "queued" };
}

/** What is kept under an Idempotency-Key: the history numbers of the messages in the answer. */
export interface KeptSend {
  first: number;
  count: number;
  remaining: QuotaLeft;
}

/**
 * Returns the first answer to a send that is repeated with the same `Idempotency-Key`; null if the send is not a
 * repetition. Call it before anything else of the send is checked, because its session may be gone by now. Throws
 * Problem idempotency_key_reused.
 */
export async function findReplay(
  { kv, idempotency }: { kv: Kv; idempotency: Pick<Idempotency, "find"> },
  request: RepeatableRequest,
): Promise<Accepted | null> {
  const kept = await idempotency.find<KeptSend>(request);
  if (kept === null) return null;
  // The ledger is read after the answer, so that it includes the answer's messages.
  const { accountId } = request;
  const ledger = await ledgerOf(kv, accountId);
  const numbers = sequence(kept.first, kept.first + kept.count - 1);
  const messages = await messagesOf(kv, await messageIds(kv, { accountId, ledger }, numbers));
  const bulkId = messages[0]?.bulkId ?? null;
  return { bulkId, replayed: true, messages: messages.map(acknowledge), remaining: kept.remaining };
}

/** Rows per message, including a kept answer to an idempotent request and an expiry row of its own. */
const ROWS_A_MESSAGE = 6;
/** Leaves room for rows of the account: ledger, history, quota. */
const MESSAGES_A_COMMIT = Math.floor((COMMIT_LIMITS.mutations - 100) / ROWS_A_MESSAGE);
const BYTES_A_COMMIT = COMMIT_LIMITS.bytes - 188 * 1024;
/** Upper bound for a message's rows without its content, which were measured at about 600 bytes. */
const BYTES_A_MESSAGE = 1024;

/** The size of a part of a commit. */
export interface Load {
  messages: number;
  bytes: number;
}

/** The most that a commit takes. */
export const WHOLE_COMMIT: Load = { messages: MESSAGES_A_COMMIT, bytes: BYTES_A_COMMIT };

/** Returns an upper bound of what these messages add to a commit. */
export function loadOf(items: readonly Pick<SendItem, "content" | "manner">[]): Load {
  let characters = 0;
  for (const { content, manner } of items) characters += charactersIn(content) + (manner ? charactersOf(manner) : 0);
  // The engine's serialisation takes at most two bytes per UTF-16 code unit.
  return { messages: items.length, bytes: items.length * BYTES_A_MESSAGE + 2 * characters };
}

function charactersOf({ quote, mentions = [], tags = [], cloud }: SendManner): number {
  return (quote?.text ?? "").length + (mentions === "all" ? 0 : mentions.join(" ").length) + tags.join(" ").length +
    (cloud?.callbackData ?? "").length;
}

/**
 * Splits a list, in order, into batches that each fit into one commit and have at most `most` items. An item that does
 * not fit even alone is a batch of its own.
 */
export function* commitSized<T>(
  items: Iterable<T>,
  loadOfItem: (item: T) => Load,
  most = Infinity,
): Generator<T[]> {
  let batch: T[] = [];
  let load = { messages: 0, bytes: 0 };
  for (const item of items) {
    const own = loadOfItem(item);
    const together = { messages: load.messages + own.messages, bytes: load.bytes + own.bytes };
    if (batch.length === most || (batch.length > 0 && !fitsOneCommit(together))) {
      yield batch;
      batch = [];
      load = own;
    } else {
      load = together;
    }
    batch.push(item);
  }
  if (batch.length > 0) yield batch;
}

export function fitsOneCommit(load: Load): boolean {
  return load.messages <= MESSAGES_A_COMMIT && load.bytes <= BYTES_A_COMMIT;
}
