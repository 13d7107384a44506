/** What readers of a queue do about rows that a race has left behind. */
import assert from "node:assert/strict";
import type { Message } from "../../../../src/message/message.ts";
import { movePlace } from "../../../../src/message/queue/place.ts";
import { LineQueue } from "../../../../src/message/queue/queue.ts";
import { messageKeys } from "../../../../src/message/rows.ts";
import { Change, firstRow, type Kv } from "../../../../src/store/kv.ts";
import { aLine, aSend, withSendWorld } from "../../../support/send_world.ts";

async function move(kv: Kv, before: Message, priority: Message["priority"]): Promise<Message> {
  const message = { ...before, priority };
  const change = new Change().set(messageKeys.message(message.id), message);
  movePlace(change, before, { message, lane: "cold" });
  await kv.commit(change);
  return message;
}

Deno.test("a message that is moved, and back while a reader drops its old place, goes on waiting", () =>
  withSendWorld(async ({ accept, kv }) => {
    const { messages: [accepted] } = await accept(aSend());
    const { id } = accepted!;
    const lineId = aLine().id;
    const waiting = async () => (await Array.fromAsync(new LineQueue(kv, lineId).each(9))).map((message) => message.id);
    const read = async () => (await kv.get(messageKeys.message(id))).value!;
    const row = await firstRow(kv, { prefix: messageKeys.queueOfLine(lineId) });
    const racing: Kv = {
      ...kv,
      async get(key) {
        const moved = await move(kv, await read(), "high");
        const slot = await kv.get(key);
        await move(kv, moved, "normal");
        return slot;
      },
    };
    assert.equal(await new LineQueue(racing, lineId).messageAt(row!), null);
    assert.deepEqual(await waiting(), [id]);

    const moved = await move(kv, await read(), "high");
    await kv.commit(new Change().set(row!.key, row!.value));
    assert.deepEqual(await waiting(), [id]);
    assert.equal((await Array.fromAsync(kv.list({ prefix: messageKeys.queueOfLine(lineId) }))).length, 1);
    assert.equal((await read()).priority, moved.priority);
  }));
