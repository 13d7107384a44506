/** Changes to queued messages: cancels a message or the rest of a bulk, reschedules or approves a message. */
import { Problem } from "../errors.ts";
import type { Bell } from "../store/bell.ts";
import { Change, firstRow, type Kv, retryOnConflict } from "../store/kv.ts";
import { messageIdsOf, ownBulk } from "./bulk.ts";
import { ownMessage } from "./history/ledger.ts";
import { chatOf, isProposed, type Message, type Priority } from "./message.ts";
import type { Clock } from "../runtime.ts";
import { assertMayChange, MAY_CHANGE_ALL } from "./proposals.ts";
import { movePlace, positionAt, ringQueue, scheduleKeyOf } from "./queue/place.ts";
import { CANCELLED, CANCELLED_BY_REPLY, type Recorder } from "./record.ts";
import { messageKeys } from "./rows.ts";
import { LineQueue } from "./queue/queue.ts";
import { settleRefunds } from "./history/counts.ts";
import type { Lane } from "./rows.ts";

/** What cancelling takes. */
export interface CancelDeps {
  kv: Kv;
  recorder: Pick<Recorder, "cancel" | "withdraw">;
  bell: Pick<Bell, "ring">;
}

interface QueuedDeps extends CancelDeps {
  clock: Pick<Clock, "now">;
  /** Returns the current lane of messages to the chat. */
  laneOf(lineId: string, chat: string): Promise<Lane>;
}

/** Cancels what waits for these addresses and is to be cancelled by a reply. */
export async function cancelByReply(
  { kv, recorder, bell }: CancelDeps,
  { lineId, accountId }: { lineId: string; accountId: string },
  addresses: () => Promise<readonly string[]>,
): Promise<void> {
  // Most lines have none, which the store's memory knows.
  if (!await firstRow(kv, { prefix: messageKeys.replyCancelsOnLine(lineId) })) return;
  const queue = new LineQueue(kv, lineId);
  const ids: string[] = [];
  for (const chat of await addresses()) {
    for await (const row of kv.list({ prefix: messageKeys.replyCancelsOfChat(lineId, chat) })) {
      if (await queue.counts(row)) ids.push(row.value.messageId);
    }
  }
  if (ids.length === 0) return;
  await recorder.withdraw(ids, CANCELLED_BY_REPLY);
  await settleRefunds(kv, accountId);
  ringQueue(bell, lineId);
}

interface NewPlace {
  /** Unix ms; undefined to leave the time as it is. */
  sendAt?: number | undefined;
  priority?: Priority | undefined;
}

/**
 * Cancels those of the account's messages that were not handed to the network yet, and refunds their quota. Resolves to
 * the cancelled messages, in the order of the ids.
 */
export async function cancelQueued(
  deps: CancelDeps,
  accountId: string,
  messageIds: readonly string[],
  may = MAY_CHANGE_ALL,
): Promise<Message[]> {
  return await afterCancel(deps, accountId, await deps.recorder.cancel(messageIds, CANCELLED, may));
}

/** Settles the quota of cancelled messages, and wakes their lines. */
async function afterCancel(
  { kv, bell }: Pick<CancelDeps, "kv" | "bell">,
  accountId: string,
  cancelled: Message[],
): Promise<Message[]> {
  // Also where there is nothing to cancel: repeated after a failure, it settles what was cancelled before.
  await settleRefunds(kv, accountId);
  for (const lineId of new Set(cancelled.map(({ sessionId }) => sessionId))) ringQueue(bell, lineId);
  return cancelled;
}

export type Queued = ReturnType<typeof makeQueued>;

/**
 * Cancels, reschedules and approves. Every method throws Problem not_found for an unknown id, also for another
 * account's, and scope_missing for a message that `may` excludes.
 */
export function makeQueued(deps: QueuedDeps) {
  const { kv, recorder, bell, clock, laneOf } = deps;

  /** Cancels the message. Throws Problem not_cancellable if it may have left or has ended. */
  async function cancel(accountId: string, messageId: string, may = MAY_CHANGE_ALL): Promise<Message> {
    assertMayChange(may, (await ownMessage(kv, accountId, messageId)).value);
    const [cancelled] = await cancelQueued(deps, accountId, [messageId], may);
    if (!cancelled) throw new Problem("not_cancellable", "It was already handed to the network, or has ended.");
    return cancelled;
  }

  /** Cancels the messages of the bulk that still wait, and resolves to them; there may be none. */
  async function cancelBulk(accountId: string, bulkId: string, may = MAY_CHANGE_ALL): Promise<Message[]> {
    const bulk = await ownBulk(kv, accountId, bulkId);
    // From the end, away from the messages that the line sends in the meantime.
    const cancelled = await cancelQueued(deps, accountId, (await messageIdsOf(kv, bulk)).reverse(), may);
    return cancelled.reverse();
  }

  /**
   * Cancels those of these messages of the account, oldest first, that still wait; resolves to their number. One on its
   * way is not counted: it is sent, or cancelled if it comes back.
   */
  async function cancelAll(accountId: string, messageIds: readonly string[], may = MAY_CHANGE_ALL): Promise<number> {
    const withdrawn = await recorder.withdraw(messageIds.toReversed(), CANCELLED, may);
    return (await afterCancel(deps, accountId, withdrawn)).length;
  }

  /**
   * Moves the message to a new time or priority, and resolves to it. Its time to live then counts from the new time.
   * Throws Problem not_editable if it may have left or has ended.
   */
  async function reschedule(
    accountId: string,
    messageId: string,
    place: NewPlace,
    may = MAY_CHANGE_ALL,
  ): Promise<Message> {
    const moved = await retryOnConflict(kv, async () => {
      const slot = await ownMessage(kv, accountId, messageId);
      const before = slot.value;
      assertMayChange(may, before);
      if (before.status !== "queued" || before.attempts > 0) {
        throw new Problem("not_editable", "It was already handed to the network, or has ended.");
      }
      const message = at(before, place);
      // Gone from the schedule, it stays in the queue, or messages to its chat could pass it.
      const scheduled = await kv.get(scheduleKeyOf(before));
      const waits = message.sendAt !== before.sendAt || scheduled.value !== null || isProposed(before);
      const lane = waits ? null : await laneOf(message.sessionId, chatOf(message.to));
      const change = new Change().check(slot).check(scheduled).set(slot.key, message);
      movePlace(change, before, { message, lane });
      return { change, result: message };
    });
    ringQueue(bell, moved.sessionId);
    return moved;
  }

  /**
   * Approves a proposed message, which takes the place in the queue or the schedule that it got at its accept, and
   * resolves to it. Throws Problem not_waiting_for_approval.
   */
  async function approve(accountId: string, messageId: string): Promise<Message> {
    const approved = await retryOnConflict(kv, async () => {
      const slot = await ownMessage(kv, accountId, messageId);
      const before = slot.value;
      if (!isProposed(before)) {
        throw new Problem("not_waiting_for_approval", "Nobody has to approve it: it was approved, or has ended.");
      }
      const now = clock.now();
      const message: Message = { ...before, proposal: { ...before.proposal!, approvedAt: now } };
      const isLater = message.sendAt !== null && message.sendAt > now;
      const lane = isLater ? null : await laneOf(message.sessionId, chatOf(message.to));
      const change = new Change().check(slot).set(slot.key, message);
      movePlace(change, before, { message, lane });
      return { change, result: message };
    });
    ringQueue(bell, approved.sessionId);
    return approved;
  }

  return { cancel, cancelBulk, cancelAll, reschedule, approve };
}

function at(message: Message, { sendAt, priority = message.priority }: NewPlace): Message {
  if (sendAt === undefined) return { ...message, priority };
  const waits = message.expiresAt - (message.sendAt ?? message.createdAt);
  // A runner that is about to send it then reads it again.
  const revision = (message.revision ?? 0) + 1;
  const order = message.sendAt === null ? { order: message.position } : {};
  return { ...message, ...order, priority, sendAt, position: positionAt(sendAt), expiresAt: sendAt + waits, revision };
}
