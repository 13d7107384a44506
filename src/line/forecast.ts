/**
 * What waits in the queues of lines, as their owner sees it: what each message waits for, and its estimated departure.
 */
import { notFound } from "../errors.ts";
import { countsOf, ownBulk } from "../message/bulk.ts";
import { chatOf, hasEnded, isProposed, type Message } from "../message/message.ts";
import { LineQueue } from "../message/queue/queue.ts";
import { type Bulk, messageKeys } from "../message/rows.ts";
import type { NewChats } from "./runner/pacing.ts";
import { Estimate, type Holds, type HoldsDeps, holdsOf, type WaitsFor } from "./waiting.ts";

/** Rows of the queue, and of the schedule, that are read to estimate a bulk; an estimate further ahead is of no use. */
const COUNTED_AHEAD = 10_000;

interface QueuedMessage {
  /** The message without its content: a thousand long texts would take 100 MB. */
  message: Pick<Message, "id" | "to" | "status" | "priority" | "sendAt" | "proposal">;
  /** Position from 1, which is the message on its way or the next to leave. */
  place: number;
  /**
   * Unix ms. Null until it is approved, while the line is not connected or its queue is paused, if the plan never lets the message leave, and
   * during a restriction without a known end, for messages to new chats.
   */
  estimatedDepartureAt: number | null;
  waitsFor: WaitsFor | null;
}

interface QueueLoad {
  waiting: number;
  oldestSeconds: number;
  /** What holds back the whole queue, apart from its pace. */
  waitsFor: WaitsFor | null;
  /** New chats that the plan lets the line start today; null if the plan sets no limit now. */
  newChats: NewChats | null;
}

interface BulkProgress {
  bulk: Bulk;
  queued: number;
  sent: number;
  failed: number;
  /**
   * Unix ms. Null when nothing waits, some of it for approval, the line is not connected, its queue is paused, or the start of its new chats is
   * not allowed or not foreseeable.
   */
  etaAt: number | null;
}

export type Forecast = ReturnType<typeof makeForecast>;

export function makeForecast(deps: HoldsDeps) {
  const { kv } = deps;

  /**
   * Returns what each queued message waits for apart from its turn, by id. Omits messages
   * that only wait for their turn.
   */
  async function waits(messages: readonly Message[]): Promise<Map<string, WaitsFor>> {
    const waiting = Map.groupBy(messages.filter(({ status }) => status === "queued"), ({ sessionId }) => sessionId);
    const found = [...waiting].map(async ([id, some]) => {
      const holds = await holdsOf(deps, { accountId: some[0]!.accountId, id });
      return [...await holds?.of(some) ?? []];
    });
    return new Map((await Promise.all(found)).flat());
  }

  /**
   * Measures what waits on the line, reading its whole queue. Throws Problem not_found,
   * also for another account's line.
   */
  async function load(accountId: string, lineId: string): Promise<QueueLoad> {
    const holds = await held(accountId, lineId);
    const queue = new LineQueue(kv, lineId);
    const [waiting, since] = [await queue.size(), await queue.oldestSince()];
    return {
      waiting,
      oldestSeconds: since === null ? 0 : Math.max(0, Math.floor((holds.now - since) / 1000)),
      waitsFor: holds.ofAll(),
      newChats: holds.newChats,
    };
  }

  /**
   * Returns the first `limit` messages of the line, in the order of departure. Throws Problem not_found, also for
   * another account's line.
   */
  async function queue(accountId: string, lineId: string, { limit }: { limit: number }): Promise<QueuedMessage[]> {
    const holds = await held(accountId, lineId);
    const messages: QueuedMessage["message"][] = [];
    for await (const message of new LineQueue(kv, lineId).each(limit)) {
      // The message may have ended since its queue row was read.
      const { id, to, status, priority, sendAt, proposal } = message;
      if (!hasEnded(message)) messages.push({ id, to, status, priority, sendAt, ...(proposal && { proposal }) });
    }
    const waits = await holds.of(messages);
    const fresh = await holds.freshAmong(messages.map(({ to }) => chatOf(to)));
    const isKnown = holds.line?.status === "connected" && !holds.paused;
    const estimate = new Estimate(holds);
    return messages.map((message, i) => {
      const { id, to, status, sendAt } = message;
      if (isProposed(message)) {
        return { message, place: i + 1, estimatedDepartureAt: null, waitsFor: waits.get(id) ?? null };
      }
      // Only the first of several messages to a new chat starts it.
      const startsChat = fresh.delete(chatOf(to));
      const leavesAt = status === "processing" ? holds.now : estimate.next({ notBefore: sendAt ?? 0, startsChat });
      return {
        message,
        place: i + 1,
        estimatedDepartureAt: isKnown ? leavesAt : null,
        waitsFor: status === "queued" ? waits.get(id) ?? null : null,
      };
    });
  }

  /**
   * Returns the progress of the bulk and when its last message will probably leave. Throws Problem not_found, also for
   * another account's bulk.
   */
  async function bulk(accountId: string, bulkId: string): Promise<BulkProgress> {
    const bulk = await ownBulk(kv, accountId, bulkId);
    const { sent, failed } = await countsOf(kv, bulkId);
    const queued = bulk.total - sent - failed;
    return { bulk, queued, sent, failed, etaAt: await eta(bulkId, bulk, queued) };
  }

  async function held(accountId: string, lineId: string): Promise<Holds> {
    const holds = await holdsOf(deps, { accountId, id: lineId });
    if (holds?.line?.accountId !== accountId || holds.line.wanted === "deleted") throw notFound("session");
    return holds;
  }

  async function eta(bulkId: string, { accountId, sessionId }: Bulk, queued: number): Promise<number | null> {
    const holds = await holdsOf(deps, { accountId, id: sessionId });
    if (queued === 0 || holds?.line?.status !== "connected" || holds.paused) return null;
    for await (const { value } of kv.list({ prefix: messageKeys.proposalsOfLine(sessionId) })) {
      if (value.bulkId === bulkId) return null;
    }
    const ahead: { chat: string; notBefore: number; isOfBulk: boolean }[] = [];
    let left = queued;
    const families = [messageKeys.queueOfLine(sessionId), messageKeys.scheduleOfLine(sessionId)];
    for (const prefix of families) {
      if (left === 0) break;
      for await (const { key, value } of kv.list({ prefix }, { limit: COUNTED_AHEAD })) {
        const isOfBulk = value.bulkId === bulkId;
        ahead.push({ chat: value.chat, notBefore: key[0] === "schedule" ? Number(key[2]) : 0, isOfBulk });
        if (isOfBulk && --left === 0) break;
      }
    }
    const fresh = await holds.freshAmong(ahead.map(({ chat }) => chat));
    const estimate = new Estimate(holds);
    let last: number | null = holds.now;
    const next = (startsChat: boolean, notBefore: number) => {
      const at = estimate.next({ startsChat, notBefore });
      last = at === null || last === null ? null : Math.max(last, at);
    };
    for (const { chat, notBefore, isOfBulk } of ahead) {
      if (isOfBulk) next(fresh.delete(chat), notBefore);
      else estimate.next({ startsChat: fresh.delete(chat), notBefore });
    }
    // The messages of the bulk beyond the rows that were read.
    for (; left > 0; left--) next(false, 0);
    return last;
  }

  return { waits, load, queue, bulk };
}
