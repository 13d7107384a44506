/**
 * The lines of an account: reads of them, the choice of the line that sends, and their count, which the plan limits. A
 * line is counted from the commit that creates it until its deletion is requested.
 */
import { batchesOf } from "../base/batches.ts";
import { notFound, Problem } from "../errors.ts";
import { Change, isRow, type Kv, retryOnConflict, type Row } from "../store/kv.ts";
import { shareReads } from "../store/layers/shared_reads.ts";
import { type Line, newLine } from "./line.ts";
import { LINE, lineKeys } from "./rows.ts";
import type { Callers } from "../account/callers.ts";
import type { Claims } from "../cluster/holder.ts";
import { KeyedQueue } from "../base/keyed_queue.ts";
import type { Runtime } from "../runtime.ts";
import { LRUCache } from "lru-cache";
import { atMost } from "../base/at_most.ts";

/** Number of lines read per batch. */
const READ_AT_ONCE = 20;

export type AccountLines = ReturnType<typeof makeAccountLines>;

export function makeAccountLines(kv: Kv) {
  // Concurrent requests for the same line share one read; the result is as fresh as with a read for each.
  const sharedGet = shareReads(kv);

  /** Like `get`, but returns the line's row, with `lastUsed` as it stands there. */
  async function row(accountId: string, lineId: string): Promise<Row<Line>> {
    const slot = await sharedGet(lineKeys.line(lineId));
    if (!isRow(slot) || slot.value.accountId !== accountId || slot.value.wanted === "deleted") {
      throw notFound("session");
    }
    return slot;
  }

  /** Like `list`, but yields the lines one by one, with `lastUsed` as it stands in each line's row. */
  async function* each(accountId: string): AsyncIterable<Line> {
    for await (const rows of batchesOf(kv.list({ prefix: lineKeys.linesOfAccount(accountId) }), READ_AT_ONCE)) {
      const slots = await kv.getMany(rows.map((row) => lineKeys.line(row.value)));
      yield* slots.flatMap(({ value }) => value && value.wanted !== "deleted" ? value : []);
    }
  }

  /** Returns the line with its current `lastUsed`, which is kept in a row of its own. */
  async function used(line: Line): Promise<Line> {
    return { ...line, lastUsed: (await kv.get(lineKeys.lineUsed(line.id))).value ?? line.lastUsed };
  }

  return {
    /** Lists the lines, oldest first, without those that are being deleted. */
    async list(accountId: string): Promise<Line[]> {
      const lines = await Array.fromAsync(each(accountId));
      const usedAt = await kv.getMany(lines.map((line) => lineKeys.lineUsed(line.id)));
      return lines.map((line, i) => ({ ...line, lastUsed: usedAt[i]?.value ?? line.lastUsed }));
    },
    each,
    /** Returns the line. Throws Problem not_found, also for another account's line. */
    get: async (accountId: string, lineId: string) => await used((await row(accountId, lineId)).value),
    row,
    used,
  };
}

/** Returns the ids of an account's lines in order of creation, without those that are being deleted. */
export async function lineIdsOf(kv: Kv, accountId: string): Promise<string[]> {
  const rows = await Array.fromAsync(kv.list({ prefix: lineKeys.linesOfAccount(accountId) }));
  return rows.map((row) => row.value);
}

/**
 * Marks every line of the account for deletion. Resolves to how many still exist, because a session has to unlink each.
 */
export async function endLines(kv: Kv, accountId: string): Promise<number> {
  for (const lineId of await lineIdsOf(kv, accountId)) {
    await retryOnConflict(kv, async () => {
      const slot = await kv.get(lineKeys.line(lineId));
      if (slot.value === null) return { change: new Change(), result: null };
      const { createdAt, generation } = slot.value;
      const change = new Change().check(slot).delete(lineKeys.lineOfAccount(accountId, createdAt, lineId));
      change.set(slot.key, { ...slot.value, wanted: "deleted", generation: generation + 1 });
      return { change, result: null };
    });
  }
  let left = 0;
  for await (const { value } of kv.list({ prefix: lineKeys.lines() })) if (value.accountId === accountId) left++;
  return left;
}

/** Size of the cache. Deleted lines need no invalidation: they are never requested again, and get evicted. */
const MOST_REMEMBERED = 10_000;

/** Makes what chooses the line of a send. */
export function makeSendingLine(lines: Pick<AccountLines, "row" | "each">) {
  /** Cache of line rows as they were last read. */
  const remembered = new LRUCache<string, Row<Line>>(atMost(MOST_REMEMBERED));

  async function defaultLine(accountId: string): Promise<string> {
    let back: string | null = null;
    for await (const line of lines.each(accountId)) {
      if (line.status === "connected" && line.wanted === "connected") return line.id;
      if (line.linked && line.wanted === "connected" && !line.halted) back ??= line.id;
    }
    if (back !== null) return back;
    throw new Problem("no_connected_session", "The account has no connected session to send from.");
  }

  return {
    /**
     * Returns the row of the line for a send. With a `lineId`, that line, if it is linked; it may be offline, and the
     * message waits. Without one, the oldest connected line, or else the oldest linked line that will reconnect by
     * itself, so that a short disconnection refuses no send. The row may come from the cache, so the caller must check
     * it in the commit that accepts the message, and call `changed` on a conflict. Throws Problem not_found,
     * session_not_connected, no_connected_session.
     */
    async forSending(accountId: string, lineId: string | null): Promise<Row<Line>> {
      const chosen = lineId ?? await defaultLine(accountId);
      const known = remembered.get(chosen);
      if (known?.value.accountId === accountId) return known;
      const found = await lines.row(accountId, chosen);
      const { linked, wanted, status } = found.value;
      if (!linked || wanted === "logged_out" || wanted === "exporting") {
        throw new Problem("session_not_connected", `The session is ${status}: link it before sending.`);
      }
      remembered.set(chosen, found);
      return found;
    },

    /** Invalidates the cached row of the line. */
    changed: (lineId: string) => void remembered.delete(lineId),
  };
}

interface RegisterDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "ids">;
  callers: Pick<Callers, "of">;
  /** Null on data that only this process uses. */
  claims: Claims | null;
}

export interface NewEntry extends Pick<Line, "name" | "pairingPhone" | "proxy"> {
  /** Adds what must be written in the same commit as the line. Called again for each retry of the commit. */
  commitWith?: ((change: Change, line: Line) => void) | undefined;
}

/** A change to commit, and the line as it is after it. */
interface LineChange {
  change: Change;
  result: Line;
}

/** Adds and removes lines, with their count, which the plan limits. */
export class LineRegister {
  readonly #deps: RegisterDeps;
  /**
   * Serializes changes of an account's line count: concurrent ones would conflict, all but one in each round of
   * retries.
   */
  readonly #counting = new KeyedQueue();

  constructor(deps: RegisterDeps) {
    this.#deps = deps;
  }

  /** Creates a line. Throws Problem session_limit_reached if the plan allows no more (checked in the same commit). */
  create(accountId: string, entry: NewEntry): Promise<Line> {
    return this.#counted(accountId, () => this.#creation(accountId, entry));
  }

  /** Commits a change of the line that also removes it from the account's list and count. */
  remove(accountId: string, build: () => Promise<LineChange>): Promise<Line> {
    return this.#counted(accountId, async () => {
      const { change, result } = await build();
      const count = await this.#deps.kv.get(lineKeys.lineCount(accountId));
      change.check(count).set(lineKeys.lineCount(accountId), Math.max(0, (count.value ?? 0) - 1))
        .delete(lineKeys.lineOfAccount(accountId, result.createdAt, result.id));
      return { change, result };
    });
  }

  #counted(accountId: string, build: () => Promise<LineChange>): Promise<Line> {
    return this.#counting.add(accountId, () => retryOnConflict(this.#deps.kv, build));
  }

  async #creation(accountId: string, { commitWith, ...fields }: NewEntry): Promise<LineChange> {
    const { kv, runtime, callers, claims } = this.#deps;
    const caller = await callers.of(accountId);
    if (!caller) throw notFound("account");
    const { name: plan, sessions } = caller.plan;
    const count = await kv.get(lineKeys.lineCount(accountId));
    if ((count.value ?? 0) >= sessions) {
      const allowed = `${sessions} ${sessions === 1 ? "session" : "sessions"}`;
      throw new Problem("session_limit_reached", `The plan "${plan}" allows ${allowed}.`);
    }
    const createdAt = runtime.clock.now();
    const line = newLine({ id: runtime.ids.next("ses"), accountId, createdAt, ...fields });
    const change = new Change().check(count).set(lineKeys.lineCount(accountId), (count.value ?? 0) + 1)
      .checkAbsent(lineKeys.line(line.id)).set(lineKeys.line(line.id), line)
      .set(lineKeys.lineOfAccount(accountId, createdAt, line.id), line.id);
    claims?.offer(change, LINE, line.id);
    commitWith?.(change, line);
    return { change, result: line };
  }
}
