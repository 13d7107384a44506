/** What waits on lines, as their owner sees it: for what, and when it will probably leave. */
import { notFound } from "../errors.ts";
import { countsOf, ownBulk } from "../message/bulk.ts";
import { chatOf, hasEnded, type Message } from "../message/message.ts";
import { LineQueue } from "../message/queue/queue.ts";
import { type Bulk, messageKeys } from "../message/rows.ts";
import type { Line } from "./line.ts";
import type { NewChats } from "./new_chats.ts";
import { lineKeys } from "./rows.ts";
import { Estimate, Holds, type HoldsDeps, type WaitsFor } from "./waiting.ts";

/** Rows before a bulk that are counted: further ahead an estimate helps nobody. */
const COUNTED_AHEAD = 10_000;

interface QueuedMessage {
  /** Without its content: a thousand long texts would take 100 MB. */
  message: Pick<Message, "id" | "to" | "status" | "priority" | "sendAt">;
  /** From 1: the one that leaves next, or is on its way. */
  place: number;
  /** Unix ms; null while the line is not connected or its queue paused, for then nobody knows; null also for never. */
  estimatedDepartureAt: number | null;
  waitsFor: WaitsFor | null;
}

interface QueueLoad {
  waiting: number;
  oldestSeconds: number;
  /** What holds all of it beside its turn. */
  waitsFor: WaitsFor | null;
  /** New chats that the plan lets the line start today; null: as many as it likes. */
  newChats: NewChats | null;
}

interface BulkProgress {
  bulk: Bulk;
  queued: number;
  sent: number;
  failed: number;
  /** Unix ms; null when nothing waits, the line is not connected or its queue paused, or the plan starts no new chats. */
  etaAt: number | null;
}

export class Forecast {
  readonly #deps: HoldsDeps;

  constructor(deps: HoldsDeps) {
    this.#deps = deps;
  }

  /** What each queued message waits for beside its turn, by its id; one that waits for nothing else is left out. */
  async waits(messages: readonly Message[]): Promise<Map<string, WaitsFor>> {
    const waiting = Map.groupBy(messages.filter(({ status }) => status === "queued"), ({ sessionId }) => sessionId);
    const found = [...waiting].map(async ([id, some]) => {
      const holds = await Holds.of(this.#deps, { accountId: some[0]!.accountId, id });
      return [...await holds?.of(some) ?? []];
    });
    return new Map((await Promise.all(found)).flat());
  }

  /** How much waits on the line: reads its whole queue. Throws Problem not_found, also for another account's. */
  async load(accountId: string, lineId: string): Promise<QueueLoad> {
    const { holds } = await this.#holdsOf(accountId, lineId);
    const queue = new LineQueue(this.#deps.kv, lineId);
    const [waiting, since] = [await queue.size(), await queue.oldestSince()];
    return {
      waiting,
      oldestSeconds: since === null ? 0 : Math.max(0, Math.floor((holds.now - since) / 1000)),
      waitsFor: holds.ofAll(),
      newChats: holds.newChats,
    };
  }

  /** The first `limit` messages of the line, in the order of departure. Throws Problem not_found, also for another account's. */
  async queue(accountId: string, lineId: string, { limit }: { limit: number }): Promise<QueuedMessage[]> {
    const { kv } = this.#deps;
    const { line, holds } = await this.#holdsOf(accountId, lineId);
    const messages: QueuedMessage["message"][] = [];
    for await (const message of new LineQueue(kv, lineId).each(limit)) {
      // One may have ended since its place in the queue was read.
      const { id, to, status, priority, sendAt } = message;
      if (!hasEnded(message)) messages.push({ id, to, status, priority, sendAt });
    }
    const waits = await holds.of(messages);
    const fresh = await holds.newAmong(messages.map(({ to }) => chatOf(to)));
    const isKnown = line.status === "connected" && !holds.paused;
    const estimate = new Estimate(holds);
    return messages.map((message, i) => {
      const { id, to, status, sendAt } = message;
      // Of several messages to a new chat the first starts it.
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

  /** How far the bulk is, and when the last of it will probably leave. Throws Problem not_found, also for another account's. */
  async bulk(accountId: string, bulkId: string): Promise<BulkProgress> {
    const { kv } = this.#deps;
    const bulk = await ownBulk(kv, accountId, bulkId);
    const { sent, failed } = await countsOf(kv, bulkId);
    const queued = bulk.total - sent - failed;
    return { bulk, queued, sent, failed, etaAt: await this.#eta(bulkId, bulk, queued) };
  }

  async #holdsOf(accountId: string, lineId: string): Promise<{ line: Line; holds: Holds }> {
    const line = (await this.#deps.kv.get(lineKeys.line(lineId))).value;
    const holds = line && await Holds.of(this.#deps, line);
    if (line?.accountId !== accountId || line.wanted === "deleted" || !holds) throw notFound("session");
    return { line, holds };
  }

  async #eta(bulkId: string, { accountId, sessionId }: Bulk, queued: number): Promise<number | null> {
    const { kv } = this.#deps;
    const line = (await kv.get(lineKeys.line(sessionId))).value;
    const holds = await Holds.of(this.#deps, { accountId, id: sessionId });
    if (queued === 0 || line?.status !== "connected" || !holds || holds.paused) return null;
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
    const fresh = await holds.newAmong(ahead.map(({ chat }) => chat));
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
    // What lies further ahead than was counted.
    for (; left > 0; left--) next(false, 0);
    return last;
  }
}
