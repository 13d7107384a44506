/** Asking that a person be erased from an account, and what came of it. */
import { readUntil } from "../base/read_until.ts";
import { notFound, Problem } from "../errors.ts";
import { lineIdsOf } from "../line/line_row.ts";
import { lineKeys } from "../line/rows.ts";
import type { Runtime } from "../runtime.ts";
import type { Bell } from "../store/bell.ts";
import { Change, isRow, type Kv, retryOnConflict } from "../store/kv.ts";
import { erasureKeys, type ErasureRecord, type ErasureRow } from "./rows.ts";

/** Erasures of one account that are under way at a time: each reads all that the account has. */
const MOST = 100;
/** Most end within this time; for the others the client asks again. */
const WAIT_MS = 5_000;

/** Rings for whoever erases: somebody is to be erased, or the next piece is due. */
export const ERASURE_TOPIC = "erasure";
/** With the id of the erasure that is done. */
export const ERASED_TOPIC = "erased/";

interface Asked {
  /** Digits, or a JID ending in `@lid`. */
  name: string;
  keyId: string | null;
}

export interface Erasures {
  /**
   * Has the person erased, and waits some seconds for it. One that is under way is answered as it is. Throws Problem
   * validation_failed for the number of a session of the account, and rate_limited.
   */
  begin(accountId: string, asked: Asked): Promise<ErasureRecord>;
  /** Throws Problem not_found. */
  get(accountId: string, erasureId: string): Promise<ErasureRecord>;
  /** Those under way, then those that are done, newest first. */
  page(
    accountId: string,
    query: { page: number; limit: number },
  ): Promise<{ erasures: ErasureRecord[]; total: number }>;
}

interface ErasuresDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "ids">;
  bell: Pick<Bell, "ring" | "hear">;
}

export function makeErasures({ kv, runtime, bell }: ErasuresDeps): Erasures {
  const { clock, ids } = runtime;

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

  async function get(accountId: string, erasureId: string): Promise<ErasureRecord> {
    const going = (await underWay(accountId)).find(({ id }) => id === erasureId);
    // In this order: it is done in the commit in which its other row goes.
    const record = going ?? (await kv.get(erasureKeys.done(accountId, erasureId))).value;
    if (!record) throw notFound("erasure");
    return record;
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

  return {
    async begin(accountId, asked) {
      await refuseOwn(accountId, asked.name);
      const { id } = await begun(accountId, asked);
      bell.ring(ERASURE_TOPIC);
      return await readUntil(() => get(accountId, id), ({ doneAt }) => doneAt !== null, {
        clock,
        withinMs: WAIT_MS,
        watch: (changed) => bell.hear(ERASED_TOPIC + id, changed),
      });
    },

    get,

    async page(accountId, { page, limit }) {
      const erasures = await underWay(accountId);
      for await (const { value } of kv.list({ prefix: erasureKeys.doneOf(accountId) }, { reverse: true })) {
        erasures.push(value);
      }
      return { erasures: erasures.slice((page - 1) * limit, page * limit), total: erasures.length };
    },
  };
}

/** What is shown, and kept: without the person. */
export function recordOf({ person: _, place: __, again: ___, ...record }: ErasureRow): ErasureRecord {
  return record;
}
