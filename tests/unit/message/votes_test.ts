import assert from "node:assert/strict";
import type { OutgoingContent } from "../../../src/message/content.ts";
import type { Message } from "../../../src/message/message.ts";
import { keepVote, makeTallyOf } from "../../../src/message/votes.ts";
import { Change } from "../../../src/store/kv.ts";
import { MemoryKv } from "../../support/memory_kv.ts";

const POLL: OutgoingContent = { kind: "poll", question: "?", options: ["tea", "coffee"], multiple: true };

function aMessage(content: OutgoingContent): Message {
  return { id: "msg_1", content } as Message;
}

Deno.test("each person's last choice counts, whether their number was known at first or not", async () => {
  const kv = new MemoryKv();
  const vote = async (number: string | null, jid: string, options: string[], messageId = "msg_1") => {
    const change = new Change();
    keepVote(change, { messageId, number, jid, options });
    await kv.commit(change);
  };
  await vote(null, "1@lid", ["tea"]);
  await vote("34600000001", "1@lid", ["coffee", "tea"]);
  await vote("34600000002", "2@lid", ["tea"]);
  await vote("34600000002", "2@lid", []);
  await vote(null, "3@lid", ["tea"]);
  await vote("34600000003", "34600000003", ["coffee"]);
  await vote("34600000004", "4@lid", ["tea"], "msg_2");
  assert.deepEqual(await makeTallyOf(kv)(aMessage(POLL)), {
    voters: 3,
    options: [{ name: "tea", votes: 2 }, { name: "coffee", votes: 2 }],
  });
});

Deno.test("what is no poll has no tally", async () => {
  assert.equal(await makeTallyOf(new MemoryKv())(aMessage({ kind: "text", text: "hi" })), null);
});
