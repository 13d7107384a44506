/** Messages that could not leave in the time they were allowed to wait end as failed, also on a line that is offline. */
import type { Runtime } from "../runtime.ts";
import { keys } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import type { MessageError } from "./message.ts";
import type { Recorder } from "./record.ts";

export const EXPIRED: MessageError = {
  code: "expired",
  message: "It could not leave within the time it was allowed to wait.",
};

/** Messages that end at a time. */
const AT_ONCE = 50;

/**
 * Ends what has waited too long (promise 2). A message that is on its way is left alone: its outcome decides. Rows of a
 * bulk that is still being accepted are left alone too.
 */
export async function expireMessages(
  { kv, runtime, recorder }: { kv: Kv; runtime: Runtime; recorder: Recorder },
): Promise<void> {
  async function expire(messageId: string): Promise<void> {
    const message = (await kv.get(keys.message(messageId))).value;
    if (message?.status !== "queued") return;
    if (message.bulkId !== null && (await kv.get(keys.bulk(message.bulkId))).value === null) return;
    await recorder.dropped(messageId, EXPIRED);
  }

  const range = { prefix: keys.expiries(), end: keys.expiry(runtime.clock.now() + 1, "") };
  let due: string[] = [];
  for await (const row of kv.list(range)) {
    due.push(row.key[2] as string);
    if (due.length < AT_ONCE) continue;
    await Promise.all(due.map(expire));
    due = [];
  }
  await Promise.all(due.map(expire));
}
