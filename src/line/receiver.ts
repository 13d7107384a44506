/**
 * The receiver of one line: keeps each incoming message exactly once, with its file, as an event in ONE commit
 * (promise 4).
 *
 * - Order is kept within a chat. Chats do not wait for each other, so a slow download delays only its own chat.
 * - The network delivers a message again after a reconnect or a crash: duplicates are dropped by (line, chat, id). A
 *   message that was only reported as undecryptable is emitted a second time once it can be read (`seen.ts`).
 * - Messages that the owner writes on the phone have an event of their own, `message.echo`. So have votes, edits and
 *   deletions (by senders who may make them), calls, group changes and presence. A message that could not be decrypted
 *   has type `unknown` and `undecryptable: true`.
 * - A message that cannot be kept because of its own content is logged and dropped: a poison message never stops a line.
 */
import { Batcher, type Settled } from "../base/batcher.ts";
import { KeyedQueue } from "../base/keyed_queue.ts";
import type { ChatIndex, InLine, Known } from "../chat/chat_index.ts";
import type { EventBody, EventData } from "../event/event.ts";
import type { EventLog } from "../event/event_log.ts";
import type { MediaIngest } from "../media/ingest.ts";
import { keepFile } from "../media/store.ts";
import { chatOf } from "../message/message.ts";
import type { OptOuts } from "../message/opt_outs.ts";
import { keepReceipts, keepVote, receiptsOfOneCommit, type SessionName } from "../message/receipts.ts";
import { cancelByReply, type CancelDeps } from "../message/queue_changes.ts";
import { messageKeys } from "../message/rows.ts";
import type { Runtime } from "../runtime.ts";
import { Change, retryOnConflict, type Slot, StoreError, untilStored } from "../store/kv.ts";
import { loadOf } from "../store/limits.ts";
import { verifiedBy } from "../verification/ends.ts";
import type { Settle } from "../whatsapp/connection.ts";
import type { GroupNow, Incoming, IncomingChange, Notice, Receipt } from "../whatsapp/incoming.ts";
import type { Network } from "../whatsapp/network.ts";
import { type Answer, answerIn } from "./answers.ts";
import { amendSent } from "./amendments.ts";
import { indexIncoming, placeOf } from "./chat_entries.ts";
import { chatsOf, keepHeard, keepMoved, writtenAt } from "./chats.ts";
import type { Lookups } from "./lookups.ts";
import { lineKeys, type SeenRow } from "./rows.ts";
import { isNews, MAX_MESSAGE_AGE_MS, mayChange, ME, seenRow } from "./seen.ts";
import PQueue from "p-queue";

export interface ReceiverDeps extends CancelDeps {
  runtime: Runtime;
  events: EventLog;
  chats: ChatIndex;
  media: MediaIngest;
  network: Pick<Network, "recall">;
  lookups: Pick<Lookups, "forget">;
  optOuts: Pick<OptOuts, "heard" | "known">;
  sessionName: SessionName;
}

/** Concurrent downloads per line. */
const DOWNLOADS_AT_ONCE = 4;

/**
 * The line's last use, and when each chat last wrote, are written at most once in this time. It is short because a chat's
 * row that an erasure deletes is not written again before it is over.
 */
const NOTED_EVERY_MS = 1_000;

/** A notice that becomes an event. */
type EventNotice = Exclude<Notice, { kind: "read" | "person" | "profile" }>;

type Taken = Awaited<ReturnType<MediaIngest["take"]>>;

/** A message to be kept: its seen row before, its file, and what settles it. */
interface Kept {
  before: Slot<SeenRow>;
  taken: Taken;
  settle: Settle;
}

export class Receiver {
  readonly #deps: ReceiverDeps;
  readonly #line: InLine;
  readonly #stopping = new AbortController();
  /** Keeps the order within each chat. */
  readonly #recorded: () => Promise<void>;
  readonly #chats = new KeyedQueue();
  /**
   * Batches receipts: a group may send a thousand for one message. Those that arrive during
   * a commit share the next one.
   */
  readonly #receipts: Batcher<Receipt, boolean>;
  /** Chats that wrote since the line's last use was noted, Unix ms: commits of the same row cannot share a flush. */
  readonly #noted = { at: -Infinity, chats: new Set<string>() };
  /** Limits downloads: too many at once would fill the memory and starve the line. */
  readonly #downloads = new PQueue({ concurrency: DOWNLOADS_AT_ONCE });

  /** `recorded` resolves when no acknowledgement of the line's messages is left to record. */
  constructor(deps: ReceiverDeps, line: InLine, recorded: () => Promise<void>) {
    this.#deps = deps;
    this.#line = line;
    this.#recorded = recorded;
    this.#receipts = new Batcher((receipts) => this.#keepReceipts(receipts), { take: receiptsOfOneCommit });
  }

  /**
   * Keeps a message. Resolves, once it is kept or found to be known, to whether the commit that kept it also settled
   * it. Rejects only if the line stops before that.
   */
  message(message: Incoming, settle: Settle): Promise<boolean> {
    return this.#chats.add(message.chat, () => this.#keep(message, settle));
  }

  /** Keeps a receipt. Resolves to true if its message still waits, which then need not be sent again. */
  receipt(receipt: Receipt): Promise<boolean> {
    return this.#receipts.add(receipt);
  }

  /** Keeps a notice. Rejects only if the line stops before that. */
  async notice(notice: Notice): Promise<void> {
    const { lineId } = this.#line;
    if (notice.kind === "profile") return this.#deps.lookups.forget(lineId, "profile");
    // After the messages of the chat that came before.
    if (notice.kind === "read" || notice.kind === "person") {
      const keep = () => notice.kind === "read" ? this.#keepReading(notice) : this.#keepPerson(notice);
      return this.#chats.add(notice.chat, () => this.#untilStored(keep));
    }
    if (notice.kind === "group" || notice.kind === "members") {
      for (const about of ["groups", `group ${notice.chat}`]) this.#deps.lookups.forget(lineId, about);
    }
    await this.#untilStored(async () => {
      const { name } = notice.kind === "group" ? notice.group : {};
      if (name) await this.#noteOf(notice.chat, { name });
      await this.#keepNotice(notice);
    });
  }

  /** Abandons what is not kept yet; the network, or the adapter's journal, delivers it again. */
  stop(): void {
    this.#stopping.abort();
  }

  async #keepReceipts(receipts: readonly Receipt[]): Promise<Settled<boolean>[]> {
    await this.#recorded();
    const waiting = await this.#untilStored(() =>
      keepReceipts({ ...this.#deps, clock: this.#deps.runtime.clock }, this.#line.lineId, receipts)
    );
    return waiting.map((value) => ({ status: "fulfilled", value }));
  }

  async #keep(message: Incoming, settle: Settle): Promise<boolean> {
    const { runtime, media } = this.#deps;
    if (runtime.confirmed.now() - message.timestamp * 1000 > MAX_MESSAGE_AGE_MS) return false;
    try {
      const before = await this.#untilStored(() => this.#seen(message));
      if (!isNews(message, before) || !await this.#untilStored(() => this.#isAllowed(message))) return false;
      const taken = message.media &&
        await this.#downloads.add(() => media.take(this.#line.accountId, message, this.#stopping.signal));
      this.#stopping.signal.throwIfAborted();
      // Before the message is kept: after a crash in between, the network delivers it again,
      // and both are idempotent.
      await this.#untilStored(() => this.#hearOptOut(message));
      await this.#untilStored(() => this.#cancelByReply(message));
      await this.#untilStored(() => this.#amendSent(message));
      return await this.#untilStored(() => this.#commit(message, { before, taken, settle }));
    } catch (error) {
      if (this.#stopping.signal.aborted || error instanceof StoreError) throw error;
      // Delivered again, it would fail again: a poison message must not stop the line.
      const { lineId } = this.#line;
      runtime.log.error(
        { lineId, type: message.type, error: String(error) },
        "an incoming message could not be kept and was dropped",
      );
      return false;
    }
  }

  /** Returns false for a forged edit or deletion, which must not become an event. */
  async #isAllowed(incoming: Incoming): Promise<boolean> {
    const { change } = incoming;
    if (change === null || await mayChange(this.#deps, this.#line.lineId, { incoming, change })) return true;
    const about = { lineId: this.#line.lineId, networkId: incoming.networkId };
    this.#deps.runtime.log.warn(about, "a sender tried to change another person's message");
    return false;
  }

  async #hearOptOut(message: Incoming): Promise<void> {
    const { lineId: sessionId, accountId } = this.#line;
    const sessionName = await this.#deps.sessionName(sessionId);
    await this.#deps.optOuts.heard(message, { accountId, sessionId, sessionName });
  }

  async #cancelByReply(message: Incoming): Promise<void> {
    const isReply = message.change ? message.change.kind === "vote" : message.type !== "reactionMessage";
    if (message.fromMe || !isReply) return;
    await cancelByReply(this.#deps, this.#line, () => this.#addressesOf(message));
  }

  async #amendSent({ change }: Incoming): Promise<void> {
    const { kv, runtime } = this.#deps;
    if (change) await amendSent({ kv, now: runtime.clock.now() }, this.#line.lineId, change);
  }

  #seen({ chat, networkId }: Incoming): Promise<Slot<SeenRow>> {
    return this.#deps.kv.get(lineKeys.seen(this.#line.lineId, chat, networkId));
  }

  /**
   * Emits the message and settles it in one commit. Resolves to false, having done neither,
   * if its seen row has changed.
   */
  async #commit(message: Incoming, kept: Kept): Promise<boolean> {
    const { kv, events, runtime } = this.#deps;
    const { lineId, accountId } = this.#line;
    const now = runtime.clock.now();
    const isOld = Math.abs(now - this.#noted.at) >= NOTED_EVERY_MS;
    if (isOld) this.#noted.chats.clear();
    let isFirst = true;
    const isKept = await retryOnConflict(kv, async () => {
      // A conflict may also be with another change of its chat, or of a verification.
      if (!isFirst && (await this.#seen(message)).version !== kept.before.version) {
        return { change: new Change(), result: false };
      }
      isFirst = false;
      const change = await this.#changeOf(message, kept);
      if (isOld) change.set(lineKeys.lineUsed(lineId), now);
      return { change, result: true };
    });
    if (!isKept) return false;
    if (isOld) this.#noted.at = now;
    if (!message.fromMe) this.#noted.chats.add(message.chat);
    events.committed(accountId);
    return true;
  }

  async #changeOf(message: Incoming, { before, taken, settle }: Kept): Promise<Change> {
    const { kv, events, runtime } = this.#deps;
    const { lineId, accountId } = this.#line;
    const seen = lineKeys.seen(lineId, message.chat, message.networkId);
    const sessionName = await this.#deps.sessionName(lineId);
    const now = runtime.clock.now();
    const change = new Change().check(before);
    const answer = await answerIn({ kv, now, addresses: () => this.#addressesOf(message) }, lineId, message);
    const body = message.change
      ? await this.#changeBody(message, message.change, change)
      : messageBody(message, { taken, answer });
    const at = await indexIncoming(this.#deps, change, this.#line, {
      message,
      data: body.data,
      before,
      now,
    });
    change.set(seen, seenRow(message, at));
    if (!message.fromMe && !this.#noted.chats.has(message.chat)) {
      keepHeard(change, lineId, { chats: chatsOf(message), at: writtenAt(message, now) });
    }
    if (taken?.file) keepFile(change, taken.file);
    const verified = await verifiedBy({ kv, now: runtime.confirmed.now() }, { lineId, change }, message);
    const made = answer && { event: "choice.made" as const, data: answer };
    await settle(change);
    // The rows of the message go with its event, and count as part of it.
    let beside = loadOf(change).bytes;
    for (const event of [body, made, verified].filter((event) => event !== null)) {
      events.append(change, { accountId, sessionId: lineId, sessionName, ...event }, beside);
      beside = 0;
    }
    return change;
  }

  /** Returns the event of an edit, a deletion or a vote; adds a vote in one of our polls to the change. */
  async #changeBody(
    { chat, participant, number }: Incoming,
    happened: IncomingChange,
    change: Change,
  ): Promise<EventBody> {
    const { target } = happened;
    switch (happened.kind) {
      case "edited":
        return { event: "message.edited", data: { messageId: target, chat, number, text: happened.text } };
      case "deleted":
        return { event: "message.deleted", data: { messageId: target, chat, number } };
      case "vote": {
        const { value: messageId } = await this.#deps.kv.get(messageKeys.messageOfNetworkId(this.#line.lineId, target));
        const { options } = happened;
        if (messageId !== null) keepVote(change, { messageId, number, jid: participant ?? chat, options });
        return { event: "poll.vote", data: { messageId, networkId: target, chat, number, options } };
      }
    }
  }

  /** Resolves to all addresses of the sender, or of the group. */
  async #addressesOf(message: Incoming): Promise<string[]> {
    const known = await this.#deps.chats.addressesOf(this.#line, chatOf(message.chat));
    return [...new Set([...chatsOf(message), ...known])];
  }

  async #noteOf(chat: string, known: Known): Promise<void> {
    await this.#deps.chats.note(this.#line, chatOf(chat), known);
  }

  async #keepPerson({ chat, username, lid }: Extract<Notice, { kind: "person" }>): Promise<void> {
    if (lid) {
      await this.#deps.optOuts.known(this.#line.accountId, [chat, lid]);
      await keepMoved(this.#deps.kv, this.#line.lineId, { old: chat, lid });
    }
    await this.#noteOf(chat, { ...(username === undefined ? {} : { username }), ...(lid ? { lid } : {}) });
  }

  /** Counts as read what the owner has read on the phone. */
  async #keepReading({ chat, networkIds }: Extract<Notice, { kind: "read" }>): Promise<void> {
    const { chats } = this.#deps;
    const places = await Promise.all(networkIds.map((id) => placeOf(this.#deps, this.#line, { chat, id })));
    const newest = Math.max(...places.map((place) => place?.order ?? 0));
    if (newest > 0) await chats.read(this.#line, chatOf(chat), newest);
  }

  /** Appends the event of a notice, in the commit that marks it as seen, unless it was kept before. */
  async #keepNotice(notice: EventNotice): Promise<void> {
    const { kv, events, sessionName, runtime: { clock } } = this.#deps;
    const { lineId: sessionId, accountId } = this.#line;
    const change = new Change();
    if (notice.id !== null) {
      const seen = await kv.get(lineKeys.seen(sessionId, notice.chat, notice.id));
      if (seen.value !== null) return;
      change.check(seen).set(seen.key, { at: clock.now(), from: ME });
    }
    events.append(change, { accountId, sessionId, sessionName: await sessionName(sessionId), ...noticeBody(notice) });
    if (await kv.commit(change)) events.committed(accountId);
  }

  /** Retries for as long as the store fails. Rethrows any other error: it concerns the message itself. */
  #untilStored<T>(work: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#deps.runtime;
    const onRetry = (error: unknown) =>
      log.warn({ lineId: this.#line.lineId, error: String(error) }, "incoming data could not be stored yet");
    return untilStored(work, { clock, signal: this.#stopping.signal, onRetry });
  }
}

/** What was found out about a message. */
interface Findings {
  taken: Taken;
  answer: Answer | null;
}

function messageBody(message: Incoming, findings: Findings): EventBody {
  const data = dataOf(message, findings);
  if (!message.fromMe) return { event: "message.received", data };
  return { event: "message.echo", data: { ...data, fromMe: true } };
}

/** Returns the event's data: the specification's fields, then the additional ones. */
function dataOf(message: Incoming, { taken, answer }: Findings): EventData<"message.received"> {
  const details = { ...message.details, ...(message.undecryptable ? { undecryptable: true } : {}) };
  return {
    from: message.chat,
    number: message.number,
    pushName: message.pushName,
    ...(message.username === undefined ? {} : { username: message.username }),
    messageId: message.networkId,
    timestamp: message.timestamp,
    type: message.type,
    text: message.text,
    ...(taken ? { media: taken.media } : {}),
    chat: message.chat,
    ...(message.participant === null ? {} : { participant: message.participant }),
    ...(message.quoted === null ? {} : { quoted: message.quoted }),
    ...(message.mentions.length === 0 ? {} : { mentions: message.mentions }),
    isForwarded: message.isForwarded,
    ...(message.viewOnce ? { viewOnce: true } : {}),
    ...(message.ad === null ? {} : { ad: message.ad }),
    ...(answer === null ? {} : { choice: { messageId: answer.messageId, id: answer.id, label: answer.label } }),
    ...(Object.keys(details).length > 0 ? { details } : {}),
  };
}

function noticeBody(notice: EventNotice): EventBody {
  const { chat } = notice;
  switch (notice.kind) {
    case "call": {
      const { callId, number, video } = notice;
      return { event: "call.received", data: { callId, chat, number, video } };
    }
    case "group":
      return { event: "group.updated", data: { group: shown(notice.group) } };
    case "members": {
      const { action, participants } = notice;
      return { event: "group.participants", data: { group: shown(notice.group), action, participants } };
    }
    case "presence":
      return { event: "presence.updated", data: { chat, number: notice.number, state: notice.state } };
  }
}

/** Returns the group as the API shows it. */
function shown({ createdAt, ...group }: GroupNow) {
  return { ...group, ...(createdAt === undefined ? {} : { createdAt: new Date(createdAt).toISOString() }) };
}
