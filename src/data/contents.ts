/** Rewrites an account's existing rows after it was sealed or unsealed. */
import { batchesOf } from "../base/batches.ts";
import { CACHE_MS } from "../account/sealed_accounts.ts";
import { type Clock, sleep } from "../runtime.ts";
import { Change, type KeyPart, type Row } from "../store/kv.ts";
import type { ChunkedKv } from "../store/layers/chunk.ts";
import { accountNamedBy } from "../store/layers/contents.ts";

/** Each row is checked, so that no concurrent change is overwritten. */
const ROWS_A_COMMIT = 8;

interface RewriteOptions {
  accountId: string;
  families: ReadonlySet<KeyPart>;
  clock: Clock;
}

/**
 * Rewrites every row of the account in the families, also while a gateway runs; resolves to their number. If
 * interrupted, it can be started again. Rows that change in the meantime are already written as chosen.
 */
export async function rewriteContents(
  kv: ChunkedKv,
  { accountId, families, clock }: RewriteOptions,
): Promise<number> {
  // Waits until every process knows the choice.
  await sleep(clock, 2 * CACHE_MS);
  let count = 0;

  async function write(some: readonly Row<unknown>[]): Promise<boolean> {
    const change = new Change();
    for (const row of some) change.check(row).set(row.key, row.value);
    if (await kv.commit(change) === null) return false;
    count += some.length;
    return true;
  }

  async function* ofAccount(): AsyncGenerator<Row<unknown>> {
    for await (const row of kv.rows()) {
      if (families.has(row.key[0]!) && accountNamedBy(row.value) === accountId) yield row;
    }
  }

  for await (const rows of batchesOf(ofAccount(), ROWS_A_COMMIT)) {
    // After a conflict, one by one: rows that fail again have changed, and so are already written as chosen.
    if (!await write(rows)) { for (const row of rows) await write([row]); }
  }
  return count;
}
