/** Migrations of rows written by older versions, by schema version; `data/migrate.ts` runs them in order. */
import { accountKeys } from "../account/rows.ts";
import { chatKeys } from "../chat/rows.ts";
import type { Migration } from "../data/migrate.ts";
import { eventKeys } from "../event/rows.ts";
import type { Line } from "../line/line.ts";
import { NO_DEPARTURE } from "../line/runner/pacing.ts";
import { lineKeys } from "../line/rows.ts";
import { mediaKeys } from "../media/rows.ts";
import { hasEnded, type Message } from "../message/message.ts";
import { ledgerOf } from "../message/history/ledger.ts";
import { addTurn } from "../message/queue/place.ts";
import { type Bulk, messageKeys } from "../message/rows.ts";
import { Change, key, prefix, type PrefixOf, type Row } from "../store/kv.ts";

/** Rows written per commit. */
const ROWS_AT_ONCE = 500;

/** Builds an index of existing rows. A row deleted in the meantime leaves a dangling entry, which is harmless. */
function index<T>(
  { to, about, of, entry }: {
    to: number;
    about: string;
    of: PrefixOf<T>;
    entry: (change: Change, row: Row<T>) => void;
  },
): Migration {
  return {
    to,
    about,
    async run(kv) {
      let change = new Change();
      for await (const row of kv.list({ prefix: of })) {
        entry(change, row);
        if (change.mutations.length < ROWS_AT_ONCE) continue;
        await kv.commit(change);
        change = new Change();
      }
      await kv.commit(change);
    },
  };
}

const indexFileEnds = index({
  to: 2,
  about: "received files are found by when they end",
  of: mediaKeys.files(),
  entry(change, { value: { id, expiresAt, size } }) {
    if (expiresAt !== null) change.set(mediaKeys.fileEnd(expiresAt, id), size);
  },
});

const splitEventOrder: Migration = {
  to: 3,
  about: "every account has an event order of its own",
  /**
   * One row used to order the events of all accounts. Each account continues from there, so that no cursor goes back.
   */
  async run(kv) {
    const shared = await kv.get(key<number>("store", "order"));
    if (shared.value === null) return;
    for await (const { value: { id } } of kv.list({ prefix: accountKeys.accounts() })) {
      const order = eventKeys.eventOrder(id);
      // An account that already has one was migrated before, and may have continued since.
      await kv.commit(new Change().checkAbsent(order).set(order, shared.value));
    }
    await kv.commit(new Change().delete(shared.key));
  },
};

type LineOfVersion3 = Omit<Line, "generation" | "observedGeneration"> & { wishNumber: number; takenWish: number };

const nameGenerations: Migration = {
  to: 4,
  about: "what is wanted of a line has a generation",
  async run(kv) {
    for await (const { key, version, value } of kv.list<Line | LineOfVersion3>({ prefix: lineKeys.lines() })) {
      if (!("wishNumber" in value)) continue;
      const { wishNumber: generation, takenWish: observedGeneration, ...line } = value;
      // A row that another process has migrated in the meantime stays as it is.
      await kv.commit(new Change().check({ key, version }).set<Line>(key, { ...line, generation, observedGeneration }));
    }
  },
};

type MessageOfVersion4 = Omit<Message, "priority" | "sendAt"> & Partial<Pick<Message, "priority" | "sendAt">>;
type BulkOfVersion4 = Omit<Bulk, "firstHistoryNumber"> & Partial<Pick<Bulk, "firstHistoryNumber">>;

/** Key parts of a row of the old queue: family, line id and position. */
const OLD_KEY_PARTS = 3;

const orderQueues: Migration = {
  to: 5,
  about: "the queue is ordered by priority, lane and time",
  async run(kv) {
    for await (const row of kv.list({ prefix: prefix<MessageOfVersion4>("message") })) {
      const { key: at, value } = row;
      if (value.priority !== undefined) continue;
      const message: Message = { ...value, priority: "normal", sendAt: null };
      const change = new Change().check(row).set(at, message);
      if (!hasEnded(message)) {
        const old = key("queue", message.sessionId, message.position);
        change.delete(old);
        addTurn(change, message, "cold");
        if (message.status === "processing") {
          const pacing = (await kv.get(lineKeys.pacing(message.sessionId))).value ?? NO_DEPARTURE;
          change.set(lineKeys.pacing(message.sessionId), { ...pacing, departing: message.id });
        }
      }
      if (message.bulkId !== null) {
        const bulk = await kv.get(key<BulkOfVersion4>("bulk", message.bulkId));
        const first = Math.min(message.historyNumber, bulk.value?.firstHistoryNumber ?? Infinity);
        if (bulk.value) change.check(bulk).set(bulk.key, { ...bulk.value, firstHistoryNumber: first });
      }
      await kv.commit(change);
    }
    // Rows of messages that had already ended.
    for await (const { key: at } of kv.list({ prefix: prefix("queue") })) {
      if (at.length === OLD_KEY_PARTS) await kv.commit(new Change().delete(at));
    }
  },
};

const listBulks = index({
  to: 6,
  about: "an account's bulks can be listed",
  of: prefix<Bulk>("bulk"),
  entry: (change, { key, value }) => change.set(messageKeys.bulkOfAccount(value.accountId, String(key.at(-1))), true),
});

const findChatEvents: Migration = {
  to: 7,
  about: "what people wrote is found among all events",
  /** Nothing to convert: the chats of version 9 replace that index. */
  async run() {},
};

const leaveOutChatRows: Migration = {
  to: 8,
  about: "waiting messages are found by chat once that is needed",
  /** Nothing to convert: an older version would miss the rows that this one leaves out, and must not open the data. */
  async run() {},
};

const indexChats: Migration = {
  to: 9,
  about: "what was said in a chat is found",
  /** Marks each account; its messages and events are indexed while the gateway runs (`line/chat_backfill.ts`). */
  async run(kv) {
    for await (const { value: { id } } of kv.list({ prefix: accountKeys.accounts() })) {
      const { messages: upTo } = await ledgerOf(kv, id);
      await kv.commit(new Change().set(chatKeys.backfill(id), { step: "sent", upTo }));
    }
  },
};

/** All migrations, in order. */
export const migrations: readonly Migration[] = [
  indexFileEnds,
  splitEventOrder,
  nameGenerations,
  orderQueues,
  listBulks,
  findChatEvents,
  leaveOutChatRows,
  indexChats,
];
