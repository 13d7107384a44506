/** How many messages of all accounts wait in queues: from the status index, two small reads an account. */
import { messageKeys } from "./rows.ts";
import type { Kv } from "../store/kv.ts";
import { EndedStretches, StatusReader } from "./status_index.ts";

export type QueuedCount = () => Promise<number>;

export function makeQueuedCount(kv: Kv): QueuedCount {
  const ended = new EndedStretches();
  return async () => {
    let queued = 0;
    for await (const { key, value: { messages } } of kv.list({ prefix: messageKeys.ledgers() })) {
      const reader = new StatusReader({ kv, ended }, { accountId: String(key.at(-1)), status: "queued", messages });
      queued += await reader.rank(messages);
    }
    return queued;
  };
}
