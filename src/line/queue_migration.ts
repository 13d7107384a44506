/** Schema version 5: the queue is ordered by priority, lane and time, and kept by chat. */
import type { Migration } from "../data/migrate.ts";
import { addTurn } from "../message/queue/enqueue.ts";
import { hasEnded, type Message } from "../message/message.ts";
import { type Bulk, messageKeys } from "../message/rows.ts";
import { Change, key, prefix } from "../store/kv.ts";
import { NO_DEPARTURE } from "./pacing.ts";
import { lineKeys } from "./rows.ts";

type MessageOfVersion4 = Omit<Message, "priority" | "sendAt"> & Partial<Pick<Message, "priority" | "sendAt">>;
type BulkOfVersion4 = Omit<Bulk, "firstHistoryNumber"> & Partial<Pick<Bulk, "firstHistoryNumber">>;

/** Rows of the old queue: a line's id and a position. */
const OLD_KEY_PARTS = 3;

export const orderQueues: Migration = {
  to: 5,
  about: "the queue is ordered by priority, lane and time",
  async run(kv) {
    for await (const row of kv.list<MessageOfVersion4>({ prefix: messageKeys.messages() as never })) {
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
    // Rows of messages that had ended already.
    for await (const { key: at } of kv.list({ prefix: prefix("queue") })) {
      if (at.length === OLD_KEY_PARTS) await kv.commit(new Change().delete(at));
    }
  },
};
