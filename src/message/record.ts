/**
 * Records the status changes of messages, each in ONE commit: status, queue row, history, event, and what the caller
 * adds (promises 1 and 4). The table in `message.ts` lists the allowed changes; any other is a bug and throws.
 */
import { inBatches } from "../base/batches.ts";
import type { ChatIndex } from "../chat/chat_index.ts";
import type { EventLog } from "../event/event_log.ts";
import type { EventBody } from "../event/event.ts";
import type { MediaStore } from "../media/store.ts";
import type { Runtime } from "../runtime.ts";
import { type Lane, messageKeys } from "./rows.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row, type Slot, untilCurrent } from "../store/kv.ts";
import { commitSized, loadOf } from "./send_command.ts";
import { ownFile, typeOf } from "./content.ts";
import { moveStatus } from "./history/status_index.ts";
import { chatOf, hasEnded, type Message, type MessageError, NEXT_STATUS } from "./message.ts";
import { countEnd, finishBulk } from "./bulk.ts";
import { giveBack } from "./history/counts.ts";
import { dequeue } from "./queue/place.ts";
import { MAY_CHANGE_ALL, type MayChange } from "./proposals.ts";
import { earlyReceipts, isProved, type SessionName, statusBody, taggedWith } from "./receipts.ts";

export const CANCELLED_BY_REPLY: MessageError = {
  code: "cancelled_by_reply",
  message: "The chat wrote before it could leave.",
};

export const CANCELLED: MessageError = { code: "cancelled", message: "It was cancelled before it could leave." };

const EXPIRED: MessageError = {
  code: "expired",
  message: "It could not leave within the time it was allowed to wait.",
};

/** Errors of messages that never got as far as their chat. */
const NEVER_SAID: ReadonlySet<string> = new Set([
  CANCELLED.code,
  CANCELLED_BY_REPLY.code,
  EXPIRED.code,
  "recipient_opted_out",
  "session_logged_out",
  "session_deleted",
  "moved",
]);

/** Messages cancelled per commit, at most: a send of another account waits for at most one such commit. */
const CANCELLED_AT_ONCE = 60;
/** Checks per commit other than those of messages: the account's sequence of events. */
const OTHER_CHECKS = 1;

interface RecorderDeps {
  kv: Kv;
  runtime: Runtime;
  events: EventLog;
  sessionName: SessionName;
  chats: ChatIndex;
  files: Pick<MediaStore, "remove">;
  /**
   * Called with each message after its move is committed; with the time of the acknowledgement, if that was the move.
   */
  recorded?: (message: Message, acknowledgedAt?: number) => void;
}

/** Adds to the commit what belongs to it besides the message: the line's pacing, the network's copy of the message. */
export type Alongside = (change: Change) => void;

/** A message's row as last read or written. While it is current, a move reads nothing. */
export interface MessageRow extends Row<Message> {
  /**
   * The lane of its queue row when it was read. If that row has been moved since, it is removed when it is next read.
   */
  readonly lane?: Lane;
}

/** A message that the server has acknowledged; `at` is when the ack arrived, Unix ms. */
export interface Acknowledged {
  row: MessageRow;
  at: number;
}

/** The change of one message in a commit. */
interface Move {
  messageId: string;
  /** Null if the row has to be read. */
  row: MessageRow | null;
  from: Message["status"];
  /** Returns the changed message; null if it cannot move. */
  next: (message: Message) => Message | null;
  acknowledgedAt?: number;
}

/**
 * Records moves. Each method resolves to the changed message, or to null if the message's
 * state does not allow the move.
 */
export class Recorder {
  readonly #deps: RecorderDeps;

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
  }

  /** Moves `queued` to `processing` and counts an attempt, unless the message was changed since it was read. */
  async dispatch(row: MessageRow, alongside?: Alongside): Promise<MessageRow | null> {
    return (await this.#move([this.#departure(row)], alongside))?.[0] ?? null;
  }

  /** Does `acknowledge` for one message and `dispatch` for the next in one commit: both move, or neither. */
  async advance(sent: Acknowledged, next: MessageRow, alongside?: Alongside): Promise<MessageRow | null> {
    return (await this.#move([acknowledgement(sent), this.#departure(next)], alongside))?.[1] ?? null;
  }

  /** Moves `processing` to `queued`, with the same place and network id, for another attempt. */
  retry(row: MessageRow, alongside?: Alongside): Promise<Message | null> {
    return this.#moveOne({ ...underway(row), next: (m) => requeued(m, m.attempts, null) }, alongside);
  }

  /**
   * Moves `processing` to `queued`, and uncounts the attempt: the network was not asked. With an error, the message
   * waits because of it, and the record shows it meanwhile.
   */
  release(row: MessageRow, error: MessageError | null, alongside?: Alongside): Promise<Message | null> {
    return this.#moveOne({ ...underway(row), next: (m) => requeued(m, m.attempts - 1, error) }, alongside);
  }

  /** Moves `processing` to `sent`, with its event. */
  acknowledge(sent: Acknowledged, alongside?: Alongside): Promise<Message | null> {
    return this.#moveOne(acknowledgement(sent), alongside);
  }

  /** Moves `queued` to `sent`: the ack was lost, but a receipt proves that an earlier attempt arrived. */
  prove(messageId: string): Promise<Message | null> {
    return this.#moveOne({
      ...queued(messageId),
      next: (m) => ({ ...m, status: "sent", sentAt: m.deliveredAt, error: null }),
    });
  }

  /** Moves `processing` to `failed`, or to `sent` if a receipt proves that an attempt arrived; with its event. */
  fail(row: MessageRow, error: MessageError, alongside?: Alongside): Promise<Message | null> {
    return this.#moveOne({ ...underway(row), next: (m) => failedUnlessProved(m, error) }, alongside);
  }

  /** Moves `queued` to `failed`, or to `sent` if a receipt proves that an attempt arrived; with its event. */
  drop(messageId: string, error: MessageError): Promise<Message | null> {
    return this.#moveOne({ ...queued(messageId), next: (m) => failedUnlessProved(m, error) });
  }

  /** Does `drop` for a message whose time is over, unless it has been rescheduled meanwhile. */
  expire(messageId: string): Promise<Message | null> {
    const { confirmed } = this.#deps.runtime;
    const next = (m: Message) => m.expiresAt <= confirmed.now() ? failedUnlessProved(m, EXPIRED) : null;
    return this.#moveOne({ ...queued(messageId), next });
  }

  /**
   * Moves `queued` to `failed` and refunds the quota, but only before the first attempt: a message that may have left
   * cannot be recalled. Commits several together. Skips those that the caller may not change.
   * Resolves to the cancelled messages, in the order of the ids.
   */
  async cancel(messageIds: readonly string[], error = CANCELLED, may = MAY_CHANGE_ALL): Promise<Message[]> {
    const { kv } = this.#deps;
    const atOnce = Math.min(CANCELLED_AT_ONCE, kv.mostChecks - OTHER_CHECKS);
    const cancelled: Message[] = [];
    const keys = [...new Set(messageIds)].map((id) => messageKeys.message(id));
    for (const some of inBatches(keys, atOnce)) {
      const slots = await kv.getMany(some);
      for (const rows of commitSized(slots.filter(isRow), ({ value }) => loadOf([value]))) {
        cancelled.push(...await this.#cancelTogether(rows, error, may));
      }
    }
    return cancelled;
  }

  /**
   * Does `cancel`, and marks those on their way, so that they end if they come back without having been handed to
   * the network. Resolves to the messages that are cancelled now.
   */
  async withdraw(messageIds: readonly string[], error = CANCELLED, may = MAY_CHANGE_ALL): Promise<Message[]> {
    const { kv } = this.#deps;
    const cancelled = await this.cancel(messageIds, error, may);
    const ended = new Set(cancelled.map(({ id }) => id));
    const cameBack: string[] = [];
    for (const id of messageIds.filter((id) => !ended.has(id))) {
      await retryOnConflict(kv, async () => {
        const slot = await kv.get(messageKeys.message(id));
        const change = new Change();
        if (!slot.value || !may(slot.value)) return { change, result: null };
        if (slot.value.status === "queued" && slot.value.attempts === 0) cameBack.push(id);
        if (slot.value.status !== "processing") return { change, result: null };
        return { change: change.check(slot).set(slot.key, { ...slot.value, withdrawn: error }), result: null };
      });
    }
    return cameBack.length === 0 ? cancelled : [...cancelled, ...await this.cancel(cameBack, error, may)];
  }

  async #moveOne(move: Move, alongside?: Alongside): Promise<Message | null> {
    return (await this.#move([move], alongside))?.[0]?.value ?? null;
  }

  /**
   * Makes all of the moves in one commit, or none. Reads the messages again on a conflict, such as with
   * a receipt or a cancellation.
   */
  async #move(moves: readonly Move[], alongside?: Alongside): Promise<MessageRow[] | null> {
    const { kv, recorded } = this.#deps;
    return await untilCurrent(async (tried) => {
      const change = new Change();
      const moved: Message[] = [];
      for (const one of moves) {
        const slot = tried === 0 && one.row ? one.row : await kv.get(messageKeys.message(one.messageId));
        const message = await this.#add(change, slot, one);
        if (!message) return null;
        moved.push(message);
      }
      alongside?.(change);
      const version = await kv.commit(change);
      if (version === null) return undefined;
      const open = new Set(moved.map((message) => hasEnded(message) ? null : message.bulkId));
      for (const [i, message] of moved.entries()) {
        recorded?.(message, moves[i]!.acknowledgedAt);
        if (hasEnded(message)) await this.#afterEnd(message, open.has(message.bulkId));
      }
      return moved.map((value, i) => ({ ...moves[i]!.row, key: messageKeys.message(value.id), value, version }));
    });
  }

  /** Cancels those of the messages that can be cancelled, in one commit. Reads them again on a conflict. */
  async #cancelTogether(
    rows: readonly Row<Message>[],
    error: MessageError,
    may: MayChange,
  ): Promise<Message[]> {
    const { kv, recorded } = this.#deps;
    const next = (m: Message): Message | null => m.attempts === 0 && may(m) ? { ...m, status: "failed", error } : null;
    let slots: readonly Slot<Message>[] | null = rows;
    const ended = await retryOnConflict(kv, async () => {
      slots ??= await kv.getMany<Message>(rows.map(({ key }) => key));
      const change = new Change();
      const result: Message[] = [];
      for (const slot of slots) {
        const message = await this.#add(change, slot, { from: "queued", next });
        if (!message) continue;
        giveBack(change, message);
        result.push(message);
      }
      slots = null;
      // In the background: a bulk has thousands of messages.
      return { change, result, background: true };
    });
    const finished = new Set<string | null>();
    for (const message of ended) {
      recorded?.(message);
      await this.#afterEnd(message, finished.has(message.bulkId));
      finished.add(message.bulkId);
    }
    return ended;
  }

  /** Adds the move of the message to the change. Null, with nothing added, if its state does not allow the move. */
  async #add(
    change: Change,
    slot: Slot<Message> & Pick<MessageRow, "lane">,
    { from, next }: Pick<Move, "from" | "next">,
  ): Promise<Message | null> {
    const decided = slot.value?.status === from ? next(slot.value) : null;
    if (!decided) return null;
    const ended = decided.status === "failed" ? { ...decided, failedAt: this.#deps.runtime.clock.now() } : decided;
    const message = await this.#placed(change, ended);
    if (!NEXT_STATUS[from].includes(message.status)) throw new Error(`no way from ${from} to ${message.status}`);
    change.check(slot).set(messageKeys.message(message.id), message);
    moveStatus(change, message, { from, to: message.status });
    if (message.status === "processing") {
      change.set(messageKeys.messageOfNetworkId(message.sessionId, message.networkId), message.id);
      if (typeOf(message.content) === "choices") {
        const { sessionId, to, dispatchedAt = 0, id } = message;
        change.set(messageKeys.choicesAsked(sessionId, chatOf(to), dispatchedAt, id), id);
      }
    }
    if (hasEnded(message)) {
      if (message.withdrawn && message.error === message.withdrawn) giveBack(change, message);
      countEnd(change, message);
      await this.#end(change, message, slot.lane);
    }
    return message;
  }

  /** Gives the message its place in its chat when it first departs, or fails before. */
  async #placed(change: Change, message: Message): Promise<Message> {
    const { id: messageId, sessionId: lineId, accountId, to, status, chatOrder } = message;
    if (chatOrder !== undefined || !isSaid(message)) return message;
    const order = await this.#deps.chats.append(change, { lineId, accountId }, {
      address: chatOf(to),
      row: { messageId },
      now: this.#deps.runtime.clock.now(),
      unread: (before) => status === "failed" ? before : 0,
    });
    return { ...message, chatOrder: order };
  }

  /** Removes the queue rows and the file's row of a message that ends, and appends its events. */
  async #end(change: Change, message: Message, lane?: Lane): Promise<void> {
    const { kv, events, sessionName, runtime: { clock } } = this.#deps;
    dequeue(change, message, lane);
    const { id: messageId, networkId, jobId, accountId, sessionId, to, error, sentAt, manner } = message;
    const tags = taggedWith(manner?.tags);
    const name = await sessionName(sessionId);
    const append = (body: EventBody) => events.append(change, { accountId, sessionId, sessionName: name, ...body });
    if (error) {
      append({ event: "message.failed", data: { messageId, networkId, jobId, to, error, ...tags } });
      return;
    }
    const at = new Date(sentAt ?? clock.now()).toISOString();
    append({ event: "message.sent", data: { messageId, networkId, jobId, to, sentAt: at, ...tags } });
    for (const receipt of await earlyReceipts(kv, message)) append(statusBody(message, receipt));
  }

  /** `goesOn`: the bulk need not be checked for its end, because another message goes on, or it was just checked. */
  async #afterEnd({ accountId, bulkId, content }: Message, goesOn: boolean): Promise<void> {
    const { events, files, runtime: { log } } = this.#deps;
    events.committed(accountId);
    if (bulkId !== null && !goesOn) await finishBulk(this.#deps, bulkId);
    const file = ownFile(content);
    if (!file) return;
    const { fileId } = file;
    // The commit removed the file's row. If its bytes cannot be removed now, the sweep of orphans does it.
    await files.remove(fileId).catch((error) => {
      log.warn({ fileId, error: String(error) }, "the file of a message that ended could not be removed");
    });
  }

  #departure(row: MessageRow): Move {
    const { clock } = this.#deps.runtime;
    const next = (m: Message) => m.revision === row.value.revision ? dispatchedAt(m, clock.now()) : null;
    return { ...queued(row.value.id), row, next };
  }
}

/** Whether the message stands in its chat: it has left the queue, and is not a mark at another one. */
export function isSaid({ status, error, content }: Message): boolean {
  if (content.kind === "reaction" || content.kind === "status") return false;
  return status !== "queued" && !(error && NEVER_SAID.has(error.code));
}

function queued(messageId: string): Omit<Move, "next"> {
  return { messageId, row: null, from: "queued" };
}

function underway(row: MessageRow): Omit<Move, "next"> {
  return { messageId: row.value.id, row, from: "processing" };
}

function acknowledgement({ row, at }: Acknowledged): Move {
  const next = (m: Message): Message => ({ ...m, status: "sent", sentAt: at, error: null });
  return { ...underway(row), next, acknowledgedAt: at };
}

function dispatchedAt(message: Message, now: number): Message {
  return {
    ...message,
    status: "processing",
    error: null,
    attempts: message.attempts + 1,
    dispatchedAt: message.dispatchedAt ?? now,
  };
}

/** Returns the message as it waits again; one that was withdrawn before the network was asked ends instead. */
function requeued(message: Message, attempts: number, error: MessageError | null): Message {
  const { withdrawn } = message;
  if (withdrawn && attempts === 0) return { ...message, status: "failed", attempts, error: withdrawn };
  return { ...message, status: "queued", attempts, error };
}

/** Every ack may have been lost although the message arrived: a phone's receipt counts more. */
function failedUnlessProved(message: Message, error: MessageError): Message {
  if (isProved(message)) return { ...message, status: "sent", sentAt: message.deliveredAt, error: null };
  return { ...message, status: "failed", error };
}
