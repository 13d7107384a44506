/**
 * Index of an account's messages by session, recipient, type and tags, as sets of history numbers. These properties never
 * change, so an accept does not write the index. Instead it catches up with the history, one batch per commit, once a
 * minute and before each query that uses it. Histories from before the index existed are indexed in the same way.
 */
import { KeyedQueue } from "../../base/keyed_queue.ts";
import { Change, type KeyOf, type Kv, nameOfKey } from "../../store/kv.ts";
import { typeOf } from "../content.ts";
import { chatOf, type Message } from "../message.ts";
import { type Facet, FACETS, messageKeys } from "../rows.ts";
import { ledgerOf, messageIds, neighbours, sequence } from "./ledger.ts";
import {
  clip,
  containerOf,
  countOf,
  decodeNumbers,
  extendRow,
  intersect,
  noNumbers,
  type NumberSet,
} from "./number_set.ts";

/** The values to find, null for any value. At least one is set. */
type Facets = Readonly<Partial<Record<Facet, string | null>>>;

/** Messages read per batch, and rows changed per commit; all of them are small. */
const READ_AT_ONCE = 1_000;
const ROWS_A_COMMIT = 500;

export function makeFilterIndex(kv: Kv) {
  const accounts = new KeyedQueue();

  /** Indexes the next messages; resolves to their number, 0 at the end of the history. */
  async function indexNext(accountId: string): Promise<number> {
    const [mark, ledger, floor] = await Promise.all([
      kv.get(messageKeys.historyIndexed(accountId)),
      ledgerOf(kv, accountId),
      kv.get(messageKeys.historyFloor(accountId)),
    ]);
    const before = Math.max(mark.value ?? 0, floor.value ?? 0);
    const count = Math.min(READ_AT_ONCE, ledger.messages - before);
    if (count <= 0) return 0;
    const ids = await messageIds(kv, { accountId, ledger }, sequence(before + 1, before + count));
    const { rows, through } = rowsOf(accountId, await neighbours(kv, ids));
    const change = new Change().check(mark).set(mark.key, through ?? before + count);
    const slots = await kv.getMany(rows.map(({ key }) => key));
    rows.forEach(({ key, added }, i) => change.set(key, extendRow(slots[i]!.value, added)));
    await kv.commit(change);
    // If another process was faster and the commit conflicts, the next call continues behind what that process indexed.
    return (through ?? before + count) - before;
  }

  return {
    /** Indexes new messages, until about `most` are done. Resolves to their number. Throws StoreError. */
    catchUp(
      accountId: string,
      { most = Infinity, signal }: { most?: number; signal?: AbortSignal } = {},
    ): Promise<number> {
      return accounts.add(accountId, async () => {
        let indexed = 0;
        while (indexed < most && !signal?.aborted) {
          const now = await indexNext(accountId);
          if (now === 0) break;
          indexed += now;
        }
        return indexed;
      });
    },

    /**
     * Returns the messages with all of these values among the history numbers `first` to `last`, as non-empty
     * containers, oldest first. Call `catchUp` before.
     */
    async find(
      accountId: string,
      facets: Facets,
      { first, last }: { first: number; last: number },
    ): Promise<NumberSet[]> {
      if (last < first) return [];
      const containers = Array.from(
        { length: containerOf(last) - containerOf(first) + 1 },
        (_, i) => containerOf(first) + i,
      );
      const sets = await Promise.all(FACETS.flatMap((facet) => {
        const value = facets[facet];
        if (value == null) return [];
        return [kv.getMany(containers.map((each) => messageKeys.historyNumbers(accountId, each, facet, value)))];
      }));
      return containers.flatMap((container, i) => {
        const rows = sets.map((set) => set[i]!.value);
        if (rows.includes(null)) return [];
        const [bits = noNumbers(), ...others] = rows.map(decodeNumbers);
        for (const other of others) intersect(bits, other);
        clip(bits, container, { first, last });
        return countOf(bits) > 0 ? [{ container, bits }] : [];
      });
    },
  };
}

/** Messages indexed per account and run: a history from before the index must not delay other work. */
const INDEXED_A_RUN = 50_000;

/** Brings the index of every account up to date; resolves to the number of messages indexed. */
export async function indexHistories(kv: Kv, signal: AbortSignal): Promise<number> {
  const index = makeFilterIndex(kv);
  let indexed = 0;
  for await (const { key } of kv.list({ prefix: messageKeys.ledgers() })) {
    indexed += await index.catchUp(String(key.at(-1)), { most: INDEXED_A_RUN, signal });
  }
  return indexed;
}

/**
 * Returns what the messages add to the rows of the index, for as many messages, oldest first, as fit into one commit.
 * `through` is the last history number included, or null if all fit.
 */
function rowsOf(accountId: string, messages: readonly Message[]): { rows: IndexRow[]; through: number | null } {
  const rows = new Map<string, IndexRow>();
  let through = null;
  for (const message of messages) {
    const container = containerOf(message.historyNumber);
    const keys = FACETS.flatMap((facet) =>
      valuesOf(message, facet).map((value) => messageKeys.historyNumbers(accountId, container, facet, value))
    );
    if (rows.size + keys.length > ROWS_A_COMMIT) return { rows: [...rows.values()], through };
    for (const key of keys) {
      const name = nameOfKey(key);
      const row = rows.get(name);
      if (row) row.added.push(message.historyNumber);
      else rows.set(name, { key, added: [message.historyNumber] });
    }
    through = message.historyNumber;
  }
  return { rows: [...rows.values()], through: null };
}

interface IndexRow {
  key: KeyOf<Uint8Array>;
  /** History numbers, oldest first. */
  added: number[];
}

type Filed = Pick<Message, "sessionId" | "to" | "content" | "manner">;

function valuesOf({ sessionId, to, content, manner }: Filed, facet: Facet): readonly string[] {
  switch (facet) {
    case "session":
      return [sessionId];
    case "recipient":
      return [chatOf(to)];
    case "type":
      return [typeOf(content)];
    case "tag":
      return manner?.tags ?? [];
  }
}
