/**
 * The rows by which a chat's waiting messages are found in the order in which the chat receives them
 * (docs/decisions/0014-order-of-the-queue.md).
 *
 * Accepting does not write them: in the order of chats, every send has another place, and writing there would cost more
 * than all its other rows together. While a whole queue is in one lane, nobody misses them, for the order of the queue
 * is the order of each chat. They are written when they are needed first: when the queue has several lanes, or a chat
 * wrote.
 */
import { inBatches } from "../../base/batches.ts";
import { Change, type Kv, type ListOptions, type Row } from "../../store/kv.ts";
import { ledgerOf } from "../history/ledger.ts";
import { PRIORITIES, type Priority } from "../message.ts";
import { messageKeys, type QueueRow } from "../rows.ts";
import { changeRows, chatKeyOf, positionOf } from "./place.ts";

/** Rows read at once, but for those that share the last position. */
const AT_ONCE = 10_000;

export interface LineOfAccount {
  lineId: string;
  accountId: string;
}

/**
 * Writes the missing rows of the line's messages up to this position. What moves to another place meanwhile, or is
 * accepted in parts, has its row from the commit that does so.
 */
export async function completeChats(
  kv: Kv,
  { lineId, accountId }: LineOfAccount,
  upTo = Infinity,
): Promise<void> {
  // Read first: what is accepted later has a later position.
  const { lastPosition } = await ledgerOf(kv, accountId);
  const end = Math.min(upTo, lastPosition);
  let after = await completeUpTo(kv, lineId);
  while (after < end) {
    const { rows, through } = await nextAccepted(kv, lineId, { after, upTo: end });
    // By chat, so that rows of one commit lie side by side in the file.
    const batches = inBatches(rows.sort((a, b) => a.value.chat.localeCompare(b.value.chat)), kv.mostChecks);
    for (const batch of batches) {
      await changeRows(kv, batch, (left) => {
        const change = new Change();
        for (const row of left) change.set(chatKeyOf(row), row.value);
        return batch === batches.at(-1) ? change.set(messageKeys.chatsComplete(lineId), through) : change;
      });
    }
    after = through;
  }
}

/** Yields the line's messages that may have no row by chat yet, in the order of acceptance in each priority. */
export async function* incompleteChats(kv: Kv, lineId: string): AsyncGenerator<Row<QueueRow>> {
  const after = await completeUpTo(kv, lineId);
  for (const priority of PRIORITIES) yield* kv.list(acceptedAfter(lineId, priority, after));
}

/** Returns the position up to which all rows are written. */
async function completeUpTo(kv: Kv, lineId: string): Promise<number> {
  return (await kv.get(messageKeys.chatsComplete(lineId))).value ?? 0;
}

/** Returns the first rows of all priorities' cold lanes, and the position up to which they are complete. */
async function nextAccepted(
  kv: Kv,
  lineId: string,
  { after, upTo }: Stretch,
): Promise<{ rows: Row<QueueRow>[]; through: number }> {
  const first = await accepted(kv, lineId, { after, upTo }, { limit: AT_ONCE });
  if (first.length < AT_ONCE) return { rows: first, through: upTo };
  const through = positionOf(first.sort((a, b) => positionOf(a) - positionOf(b))[AT_ONCE - 1]!);
  // Any number of scheduled messages may share a position, also with an accepted one.
  const last = await accepted(kv, lineId, { after: through - 1, upTo: through });
  return { rows: [...first.filter((row) => positionOf(row) < through), ...last], through };
}

interface Stretch {
  after: number;
  upTo: number;
}

/** Returns the rows of each priority's cold lane in this stretch; of each up to `limit`. */
async function accepted(
  kv: Kv,
  lineId: string,
  { after, upTo }: Stretch,
  options: ListOptions = {},
): Promise<Row<QueueRow>[]> {
  const lanes = await Promise.all(PRIORITIES.map((priority) => {
    const range = acceptedAfter(lineId, priority, after);
    return Array.fromAsync(kv.list({ ...range, end: [...range.prefix, upTo + 1] }, options));
  }));
  return lanes.flat();
}

/** Messages are accepted into the cold lanes. */
function acceptedAfter(lineId: string, priority: Priority, after: number) {
  const prefix = messageKeys.queueLane(lineId, priority, "cold");
  return { prefix, start: [...prefix, after + 1] };
}
