/**
 * What becomes of a message, in ONE commit each: status, queue row, history, event, and whatever the caller adds
 * (promises 1 and 4). The moves are the table in `message.ts`; one that it does not know is a bug and throws.
 */
import { piecesOf } from "../base/batches.ts";
import type { EventLog } from "../event/log.ts";
import type { EventBody } from "../event/event.ts";
import type { MediaStore } from "../media/store.ts";
import type { Runtime } from "../runtime.ts";
import { type Lane, messageKeys } from "./rows.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row, type Slot, StoreError } from "../store/kv.ts";
import { commitSized, loadOf } from "./commit_size.ts";
import { storedFile } from "./content.ts";
import { moveStatus } from "./history/status_index.ts";
import { hasEnded, type Message, type MessageError, NEXT_STATUS } from "./message.ts";
import { countEnd, finishBulk } from "./bulk.ts";
import { giveBack } from "./refund.ts";
import { dequeue } from "./queue/enqueue.ts";
import { earlyReceipts, isProved, type SessionName, statusBody } from "./receipts.ts";

export const CANCELLED: MessageError = { code: "cancelled", message: "It was cancelled before it could leave." };

/** How often a move begins anew because its message was changed in between. */
const MOST_TRIES = 20;
/** Messages that one commit cancels, at most: a send of another account waits for no more than the one that is being written. */
const CANCELLED_AT_ONCE = 60;
/** Of the checks of a commit, those that are not a message's: the account's sequence of events. */
const OTHER_CHECKS = 1;

interface RecorderDeps {
  kv: Kv;
  runtime: Runtime;
  events: EventLog;
  sessionName: SessionName;
  files: Pick<MediaStore, "remove">;
  /** Called with each message once its move is written; `acknowledgedAt`: as in `Acknowledged`, if it was. */
  recorded?: (message: Message, acknowledgedAt?: number) => void;
}

/** Adds to the commit what belongs to it besides the message: the line's pacing, the copy of what leaves. */
export type Alongside = (change: Change) => void;

/** A message's row as it was last read or written: as long as it stands so, a move reads nothing. */
export interface MessageRow extends Row<Message> {
  /** Where its place in the queue was found; a row that was moved since is left behind, and goes when it is met. */
  readonly lane?: Lane;
}

/** A message that the server has acknowledged; `at` is when its word was there, Unix ms. */
export interface Acknowledged {
  row: MessageRow;
  at: number;
}

/** What one message does in a commit. */
interface Move {
  messageId: string;
  /** Null: it has to be read. */
  row: MessageRow | null;
  from: Message["status"];
  /** Null: it can't move. */
  next: (message: Message) => Message | null;
  acknowledgedAt?: number;
}

/** Each method resolves to the message as it is now, or to null when it is not in a state from which it could move. */
export class Recorder {
  readonly #deps: RecorderDeps;

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
  }

  /** `queued` to `processing`: one more attempt, unless the message was changed since it was read. */
  async dispatched(row: MessageRow, alongside?: Alongside): Promise<MessageRow | null> {
    return (await this.#move([this.#departure(row)], alongside))?.[0] ?? null;
  }

  /** As `sent` of the one and `dispatched` of the next, in one commit; where either cannot move, neither does. */
  async followed(sent: Acknowledged, next: MessageRow, alongside?: Alongside): Promise<MessageRow | null> {
    return (await this.#move([acknowledgement(sent), this.#departure(next)], alongside))?.[1] ?? null;
  }

  /** `processing` to `queued`, in its place, under its network id; `hold` takes the attempt back, for it was none. */
  requeued(row: MessageRow, why: "hold" | "again", alongside?: Alongside): Promise<Message | null> {
    const taken = why === "hold" ? 1 : 0;
    const next = (m: Message): Message => ({ ...m, status: "queued", attempts: m.attempts - taken });
    return this.#moveOne({ ...underway(row), next }, alongside);
  }

  /** `processing` to `sent`, with its event. */
  sent(sent: Acknowledged, alongside?: Alongside): Promise<Message | null> {
    return this.#moveOne(acknowledgement(sent), alongside);
  }

  /** `queued` to `sent`: the ack was lost, but a receipt proves that an earlier attempt arrived. */
  proved(messageId: string): Promise<Message | null> {
    return this.#moveOne({ ...queued(messageId), next: (m) => ({ ...m, status: "sent", sentAt: m.deliveredAt }) });
  }

  /** `processing` to `failed`, with its event; to `sent` when a receipt proves that an attempt arrived. */
  failed(row: MessageRow, error: MessageError, alongside?: Alongside): Promise<Message | null> {
    return this.#moveOne({ ...underway(row), next: (m) => failedUnlessProved(m, error) }, alongside);
  }

  /** `queued` to `failed` or proved `sent`, with its event: expired, or its line is gone. */
  dropped(messageId: string, error: MessageError): Promise<Message | null> {
    return this.#moveOne({ ...queued(messageId), next: (m) => failedUnlessProved(m, error) });
  }

  /**
   * `queued` to `failed`, and their quota to be given back, but only before the first attempt: what may have left can't be
   * called back. Some are written together; resolves to those that were cancelled, in the order of the ids.
   */
  async cancelled(messageIds: readonly string[]): Promise<Message[]> {
    const { kv } = this.#deps;
    const atOnce = Math.min(CANCELLED_AT_ONCE, kv.mostChecks - OTHER_CHECKS);
    const cancelled: Message[] = [];
    const keys = [...new Set(messageIds)].map((id) => messageKeys.message(id));
    for (const some of piecesOf(keys, atOnce)) {
      const slots = await kv.getMany(some);
      for (const rows of commitSized(slots.filter(isRow), ({ value }) => loadOf([value]))) {
        cancelled.push(...await this.#cancelTogether(rows));
      }
    }
    return cancelled;
  }

  async #moveOne(move: Move, alongside?: Alongside): Promise<Message | null> {
    return (await this.#move([move], alongside))?.[0]?.value ?? null;
  }

  /**
   * Makes all of the moves in one commit, or none of them; reads the messages again when one was changed in between (a
   * receipt came, the owner cancelled).
   */
  async #move(moves: readonly Move[], alongside?: Alongside): Promise<MessageRow[] | null> {
    const { kv, recorded } = this.#deps;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const change = new Change();
      const moved: Message[] = [];
      for (const one of moves) {
        const slot = tries === 0 && one.row ? one.row : await kv.get(messageKeys.message(one.messageId));
        const message = await this.#add(change, slot, one);
        if (!message) return null;
        moved.push(message);
      }
      alongside?.(change);
      const version = await kv.commit(change);
      if (version === null) continue;
      const open = new Set(moved.map((message) => hasEnded(message) ? null : message.bulkId));
      for (const [i, message] of moved.entries()) {
        recorded?.(message, moves[i]!.acknowledgedAt);
        if (hasEnded(message)) await this.#afterEnd(message, open.has(message.bulkId));
      }
      return moved.map((value, i) => ({ ...moves[i]!.row, key: messageKeys.message(value.id), value, version }));
    }
    throw new StoreError("unavailable", `gave up after ${MOST_TRIES} conflicting commits`);
  }

  /** Cancels, in one commit, those of the messages that can be; reads them again when one was changed in between. */
  async #cancelTogether(rows: readonly Row<Message>[]): Promise<Message[]> {
    const { kv, recorded } = this.#deps;
    const next = (m: Message): Message | null => m.attempts === 0 ? { ...m, status: "failed", error: CANCELLED } : null;
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
      // Of a bulk there are thousands.
      return { change, result, background: true };
    }, MOST_TRIES);
    const finished = new Set<string | null>();
    for (const message of ended) {
      recorded?.(message);
      await this.#afterEnd(message, finished.has(message.bulkId));
      finished.add(message.bulkId);
    }
    return ended;
  }

  /** Adds to the change that the message at the slot moves; null, and nothing added, where it is not in a state to. */
  async #add(
    change: Change,
    slot: Slot<Message> & Pick<MessageRow, "lane">,
    { from, next }: Pick<Move, "from" | "next">,
  ): Promise<Message | null> {
    const decided = slot.value?.status === from ? next(slot.value) : null;
    if (!decided) return null;
    const message = decided.status === "failed" ? { ...decided, failedAt: this.#deps.runtime.clock.now() } : decided;
    if (!NEXT_STATUS[from].includes(message.status)) throw new Error(`no way from ${from} to ${message.status}`);
    change.check(slot).set(messageKeys.message(message.id), message);
    moveStatus(change, message, { from, to: message.status });
    if (message.status === "processing") {
      change.set(messageKeys.messageOfNetworkId(message.sessionId, message.networkId), message.id);
    }
    if (hasEnded(message)) {
      countEnd(change, message);
      await this.#end(change, message, slot.lane);
    }
    return message;
  }

  /** What ends with the message: its place in the queue and its file's row; and the events that say so. */
  async #end(change: Change, message: Message, lane?: Lane): Promise<void> {
    const { kv, events, sessionName, runtime: { clock } } = this.#deps;
    dequeue(change, message, lane);
    const { id: messageId, networkId, jobId, accountId, sessionId, to, error, sentAt } = message;
    const name = await sessionName(sessionId);
    const append = (body: EventBody) => events.append(change, { accountId, sessionId, sessionName: name, ...body });
    if (error) {
      append({ event: "message.failed", data: { messageId, networkId, jobId, to, error } });
      return;
    }
    const at = new Date(sentAt ?? clock.now()).toISOString();
    append({ event: "message.sent", data: { messageId, networkId, jobId, to, sentAt: at } });
    for (const receipt of await earlyReceipts(kv, message)) append(statusBody(message, receipt));
  }

  /** `goesOn`: another message of its bulk leaves now, so that nobody has to look whether this was the last. */
  async #afterEnd({ accountId, bulkId, content }: Message, goesOn: boolean): Promise<void> {
    const { events, files, runtime: { log } } = this.#deps;
    events.committed(accountId);
    if (bulkId !== null && !goesOn) await finishBulk(this.#deps, bulkId);
    const file = storedFile(content);
    if (!file) return;
    const { fileId } = file;
    // The row is gone with the commit; bytes that stay behind are swept as orphans.
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
    attempts: message.attempts + 1,
    dispatchedAt: message.dispatchedAt ?? now,
  };
}

/** Acks may all be lost and the message have arrived: what a phone has reported counts more. */
function failedUnlessProved(message: Message, error: MessageError): Message {
  if (isProved(message)) return { ...message, status: "sent", sentAt: message.deliveredAt, error: null };
  return { ...message, status: "failed", error };
}
