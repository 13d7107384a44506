/** A chat is found whatever happens to it between the reads. */
import assert from "node:assert/strict";
import type { Key, Slot } from "../../../src/store/kv.ts";
import { Change } from "../../../src/store/kv.ts";
import { chatsOn } from "../../support/chats.ts";
import { withSendWorld } from "../../support/send_world.ts";

Deno.test("a chat that gets a message while it is read is found all the same", () =>
  withSendWorld(async ({ kv }) => {
    const line = { lineId: "ses_1", accountId: "acc_1" };
    const address = "34600000001";
    const say = async (id: string, now: number) => {
      const change = new Change();
      const row = { accountId: "acc_1", id, timestamp: now, author: null, type: "conversation", text: id } as const;
      await chatsOn(kv).append(change, line, { address, row, now, unread: (before) => before + 1 });
      await kv.commit(change);
    };
    await say("A", 1);
    let reads = 0;
    const busy = {
      ...kv,
      getMany: <T>(keys: readonly Key[]) => kv.getMany<T>(keys),
      async get<T>(key: Key): Promise<Slot<T>> {
        if (++reads === 1) await say("B", 2);
        return await kv.get<T>(key);
      },
    };
    const found = await chatsOn(busy as typeof kv).find(line, address);
    assert.deepEqual([found?.unread, reads > 1], [2, true]);
  }));
