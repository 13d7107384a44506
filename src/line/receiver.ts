/**
 * The receiver of one line: an incoming message is kept once, with its file, as an event in ONE commit (promise 4).
 *
 * - Order is kept within a chat; chats do not wait for each other, so a slow download delays its own chat alone.
 * - The network gives a message again after a reconnect or a crash: what was kept is dropped by (line, chat, id). What
 *   was only reported as unreadable is emitted a second time when it can be read after all (`seen.ts`).
 * - What the owner writes on the phone is an event of its own, `message.echo`, and so are votes, and edits and deletions
 *   by those who may make them (`authorship.ts`); what could not be decrypted is `unknown` with `undecryptable: true`.
 * - A message that cannot be kept for a reason of its own is logged and left: poison never stops a line.
 */
import PQueue from "p-queue";
import type { EventBody, EventData } from "../event/event.ts";
import type { EventLog } from "../event/log.ts";
import type { MediaIngest } from "../media/ingest.ts";
import { KeyedQueue } from "../base/keyed_queue.ts";
import { keepFile } from "../media/store.ts";
import type { OptOuts } from "../message/opt_outs.ts";
import { keepReceipts, receiptsOfOneCommit, type SessionName } from "../message/receipts.ts";
import { messageKeys } from "../message/rows.ts";
import { keepVote } from "../message/votes.ts";
import type { Runtime } from "../runtime.ts";
import { lineKeys, type SeenRow } from "./rows.ts";
import { Change, type Kv, type Slot, StoreError } from "../store/kv.ts";
import { Batcher, type Settled } from "../base/batcher.ts";
import { untilStored } from "../store/retry.ts";
import type { Settle } from "../whatsapp/connection.ts";
import type { Incoming, IncomingChange, Receipt } from "../whatsapp/incoming.ts";
import { mayChange } from "./authorship.ts";
import { chatsOf, keepHeard, writtenAt } from "./chats.ts";
import type { Network } from "../whatsapp/network.ts";
import type { Notice } from "../whatsapp/notices.ts";
import type { Lookups } from "./lookups.ts";
import { keepNotice } from "./notices.ts";
import { isNews, MAX_MESSAGE_AGE_MS, seenRow } from "./seen.ts";

export interface ReceiverDeps {
  kv: Kv;
  runtime: Runtime;
  events: EventLog;
  media: MediaIngest;
  network: Pick<Network, "recall">;
  lookups: Pick<Lookups, "forget">;
  optOuts: Pick<OptOuts, "heard">;
  sessionName: SessionName;
}

/** Files of one line that are fetched at a time. */
const DOWNLOADS_AT_ONCE = 4;

type Taken = Awaited<ReturnType<MediaIngest["take"]>>;

export class Receiver {
  readonly #deps: ReceiverDeps;
  readonly #line: { id: string; accountId: string };
  readonly #stopping = new AbortController();
  /** A chat keeps its order. */
  readonly #chats = new KeyedQueue();
  /** Of a group come a thousand for one message: those that gather while some are written share the next commit. */
  readonly #receipts: Batcher<Receipt, boolean>;
  /** Many files at once would fill the memory and starve the line. */
  readonly #downloads = new PQueue({ concurrency: DOWNLOADS_AT_ONCE });

  /** `recorded`: resolves when no message that was acknowledged is still to be recorded. */
  constructor(deps: ReceiverDeps, line: { id: string; accountId: string }, recorded: () => Promise<void>) {
    this.#deps = deps;
    this.#line = line;
    this.#receipts = new Batcher((receipts) => this.#keepReceipts(receipts), {
      take: receiptsOfOneCommit,
      turn: recorded,
    });
  }

  /**
   * Resolves when the message is kept, or known already: to whether it was settled in the commit that kept it. Rejects
   * only when the line stops before that.
   */
  message(message: Incoming, settle: Settle): Promise<boolean> {
    return this.#chats.add(message.chat, () => this.#keep(message, settle));
  }

  /** Keeps a receipt. True: it is about a message that still waits, which need not go again. */
  receipt(receipt: Receipt): Promise<boolean> {
    return this.#receipts.add(receipt);
  }

  /** Keeps what happened beside messages. Rejects only when the line stops before that. */
  notice(notice: Notice): Promise<void> {
    const { id: lineId } = this.#line;
    if (notice.kind === "group" || notice.kind === "members") {
      for (const about of ["groups", `group ${notice.chat}`]) this.#deps.lookups.forget(lineId, about);
    }
    const { kv, events, sessionName, runtime: { clock } } = this.#deps;
    return this.#untilStored(() => keepNotice({ kv, clock, events, sessionName }, this.#line, notice));
  }

  /** Gives up what is not kept yet; the network, or the adapter's journal, gives it again. */
  stop(): void {
    this.#stopping.abort();
  }

  async #keepReceipts(receipts: readonly Receipt[]): Promise<Settled<boolean>[]> {
    const waiting = await this.#untilStored(() =>
      keepReceipts({ ...this.#deps, clock: this.#deps.runtime.clock }, this.#line.id, receipts)
    );
    return waiting.map((value) => ({ status: "fulfilled", value }));
  }

  async #keep(message: Incoming, settle: Settle): Promise<boolean> {
    const { runtime, media } = this.#deps;
    if (runtime.clock.now() - message.timestamp * 1000 > MAX_MESSAGE_AGE_MS) return false;
    try {
      const before = await this.#untilStored(() => this.#seen(message));
      if (!isNews(message, before) || !await this.#untilStored(() => this.#isAllowed(message))) return false;
      const taken = message.media &&
        await this.#downloads.add(() => media.take(this.#line.accountId, message, this.#stopping.signal));
      this.#stopping.signal.throwIfAborted();
      // First: a crash in between makes the network give the message again, and a number is put on the list once.
      await this.#untilStored(() => this.#hearOptOut(message));
      return await this.#untilStored(() => this.#commit(message, { before, taken, settle }));
    } catch (error) {
      if (this.#stopping.signal.aborted || error instanceof StoreError) throw error;
      // Given again, it would fail again: poison must not stop the line.
      const { id: lineId } = this.#line;
      runtime.log.error({ lineId, type: message.type, error: String(error) }, "an incoming message could not be kept");
      return false;
    }
  }

  /** A forged edit or deletion is no event. */
  async #isAllowed(incoming: Incoming): Promise<boolean> {
    const { change } = incoming;
    if (change === null || await mayChange(this.#deps, this.#line.id, { incoming, change })) return true;
    const about = { lineId: this.#line.id, networkId: incoming.networkId };
    this.#deps.runtime.log.warn(about, "somebody tried to change another's message");
    return false;
  }

  async #hearOptOut(message: Incoming): Promise<void> {
    const { id: sessionId, accountId } = this.#line;
    const sessionName = await this.#deps.sessionName(sessionId);
    await this.#deps.optOuts.heard(message, { accountId, sessionId, sessionName });
  }

  #seen({ chat, networkId }: Incoming): Promise<Slot<SeenRow>> {
    return this.#deps.kv.get(lineKeys.seen(this.#line.id, chat, networkId));
  }

  /** Emits the message and settles it; false, and neither, when its row is no longer as it was `before`. */
  async #commit(
    message: Incoming,
    { before, taken, settle }: { before: Slot<SeenRow>; taken: Taken; settle: Settle },
  ): Promise<boolean> {
    const { kv, events, runtime } = this.#deps;
    const { id: lineId, accountId } = this.#line;
    const seen = lineKeys.seen(lineId, message.chat, message.networkId);
    const sessionName = await this.#deps.sessionName(lineId);
    const now = runtime.clock.now();
    const change = new Change().check(before).set(seen, seenRow(message, now)).set(lineKeys.lineUsed(lineId), now);
    if (!message.fromMe) keepHeard(change, lineId, { chats: chatsOf(message), at: writtenAt(message, now) });
    if (taken?.file) keepFile(change, taken.file);
    const body = message.change ? await this.#changeBody(message, message.change, change) : messageBody(message, taken);
    events.append(change, { accountId, sessionId: lineId, sessionName, ...body });
    settle(change);
    const isKept = await kv.commit(change) !== null;
    if (isKept) events.committed(accountId);
    return isKept;
  }

  /** The event of an edit, a deletion or a vote; a vote in a poll of ours is counted in the commit. */
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
        const { value: messageId } = await this.#deps.kv.get(messageKeys.messageOfNetworkId(this.#line.id, target));
        const { options } = happened;
        if (messageId !== null) keepVote(change, { messageId, number, jid: participant ?? chat, options });
        return { event: "poll.vote", data: { messageId, networkId: target, chat, number, options } };
      }
    }
  }

  /** Tries for as long as the store is in trouble; any other error is the message's own and goes to the caller. */
  #untilStored<T>(work: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#deps.runtime;
    const onRetry = (error: unknown) =>
      log.warn({ lineId: this.#line.id, error: String(error) }, "what came in waits for the store");
    return untilStored(work, { clock, signal: this.#stopping.signal, onRetry });
  }
}

function messageBody(message: Incoming, taken: Taken): EventBody {
  const data = dataOf(message, taken);
  if (!message.fromMe) return { event: "message.received", data };
  return { event: "message.echo", data: { ...data, fromMe: true } };
}

/** The event's data: the specification's fields, then what goes beyond it. */
function dataOf(message: Incoming, taken: Taken): EventData<"message.received"> {
  const details = { ...message.details, ...(message.undecryptable ? { undecryptable: true } : {}) };
  return {
    from: message.chat,
    number: message.number,
    pushName: message.pushName,
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
    ...(Object.keys(details).length > 0 ? { details } : {}),
  };
}
