/** Requests to erase a person from an account, and their records. */
import { readUntil } from "../base/within.ts";
import { notFound, Problem } from "../errors.ts";
import { lineIdsOf } from "../line/account_lines.ts";
import { lineKeys } from "../line/rows.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { Change, isRow, type Kv, retryOnConflict } from "../store/kv.ts";
import { erasureKeys, type ErasureRecord, type ErasureRow } from "./rows.ts";

/** Most concurrent erasures of one account: each reads all of the account's data. */
const MOST = 100;
/** How long a request waits for the result. Most erasures end within this time; for the others the client polls. */
const WAIT_MS = 5_000;

/** Rings when a person is to be erased, or the next step is due. */
export const ERASURE_TOPIC = "erasure";
/** Rings with the id of an erasure that is done. */
export const ERASED_TOPIC = "erased/";

interface Asked {
  /** Digits, or a JID ending in `@lid`. */
  name: string;
  keyId: string | null;
}

interface ErasuresDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "ids">;
  bell: Pick<Bell, "ring" | "hear">;
}

export function makeErasures({ kv, bell, runtime: { clock, ids } }: ErasuresDeps) {
  /**
   * Starts the erasure of a person, unless one is under way, and waits a few seconds for it. Throws Problem
   * validation_failed for the number of one of the account's sessions, and rate_limited.
   */
  async function begin(accountId: string, asked: Asked): Promise<ErasureRecord> {
    await refuseOwn(accountId, asked.name);
    const { id } = await begun(accountId, asked);
    bell.ring(ERASURE_TOPIC);
    return await readUntil(() => get(accountId, id), ({ doneAt }) => doneAt !== null, {
      clock,
      withinMs: WAIT_MS,
      watch: (changed) => bell.hear(ERASED_TOPIC + id, changed),
    });
  }

  /** Resolves to an erasure's record. Throws Problem not_found. */
  async function get(accountId: string, erasureId: string): Promise<ErasureRecord> {
    const going = (await underWay(accountId)).find(({ id }) => id === erasureId);
    // In this order, because the commit that writes the second row deletes the first.
    const record = going ?? (await kv.get(erasureKeys.done(accountId, erasureId))).value;
    if (!record) throw notFound("erasure");
    return record;
  }

  /** Reads a page: erasures under way, then completed ones, each newest first. */
  async function page(
    accountId: string,
    { page, limit }: { page: number; limit: number },
  ): Promise<{ erasures: ErasureRecord[]; total: number }> {
    const erasures = await underWay(accountId);
    for await (const { value } of kv.list({ prefix: erasureKeys.doneOf(accountId) }, { reverse: true })) {
      erasures.push(value);
    }
    return { erasures: erasures.slice((page - 1) * limit, page * limit), total: erasures.length };
  }

  async function refuseOwn(accountId: string, name: string): Promise<void> {
    const slots = await kv.getMany((await lineIdsOf(kv, accountId)).map((lineId) => lineKeys.line(lineId)));
    if (!slots.some(({ value }) => value?.phone === name)) return;
    const message = "is the number of a session of yours: delete the session, or the account";
    throw new Problem("validation_failed", "The number cannot be erased.", { errors: [{ path: "number", message }] });
  }

  async function underWay(accountId: string): Promise<ErasureRecord[]> {
    const rows = await Array.fromAsync(kv.list({ prefix: erasureKeys.erasuresOf(accountId) }));
    return rows.map(({ value }) => recordOf(value)).sort((a, b) => b.askedAt - a.askedAt);
  }

  function begun(accountId: string, { name, keyId }: Asked): Promise<ErasureRow> {
    return retryOnConflict(kv, async () => {
      const slot = await kv.get(erasureKeys.erasure(accountId, name));
      if (isRow(slot)) return { change: new Change(), result: slot.value };
      if ((await underWay(accountId)).length >= MOST) {
        throw new Problem("rate_limited", `${MOST} numbers of the account are being erased; wait for one of them.`);
      }
      const isLid = name.endsWith("@lid");
      const row: ErasureRow = {
        id: ids.next("era"),
        accountId,
        keyId,
        askedAt: clock.now(),
        doneAt: null,
        messages: 0,
        events: 0,
        files: 0,
        person: { number: isLid ? null : name, lids: isLid ? [name] : [] },
        place: { step: "waiting" },
        again: false,
      };
      return { change: new Change().check(slot).set(slot.key, row), result: row };
    });
  }

  return { begin, get, page };
}

/** Returns the record that is shown and kept, which does not name the person. */
export function recordOf({ person: _, place: __, again: ___, ...record }: ErasureRow): ErasureRecord {
  return record;
}
