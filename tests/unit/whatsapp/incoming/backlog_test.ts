import assert from "node:assert/strict";
import type { BinaryNode } from "@whiskeysockets/baileys";
import { makeBacklog } from "../../../../src/whatsapp/baileys/repairs/upkeep.ts";
import { testRuntime } from "../../../support/runtime.ts";

/** A backlog, and the counts that were requested of it. */
function scene() {
  const runtime = testRuntime();
  const requested: string[] = [];
  const sendNode = ({ content }: BinaryNode) => {
    const [batch] = content as BinaryNode[];
    return Promise.resolve(void requested.push(`${batch!.tag} ${batch!.attrs.count}`));
  };
  const backlog = makeBacklog({ sendNode }, runtime);
  const come = (count: number, attrs: Record<string, string> = { offline: "0" }) => {
    for (let i = 0; i < count; i++) backlog.watch({ tag: "message", attrs });
  };
  const end = { tag: "ib", attrs: {}, content: [{ tag: "offline", attrs: { count: "1" } }] };
  return { runtime, backlog, come, end: () => backlog.watch(end), requested: () => requested.splice(0) };
}

Deno.test("after each hundred of the backlog the next hundred is requested", () => {
  const { come, requested } = scene();
  come(99);
  come(5, {});
  assert.deepEqual(requested(), []);
  come(1);
  assert.deepEqual(requested(), ["offline_batch 100"]);
  come(250);
  assert.deepEqual(requested(), ["offline_batch 100", "offline_batch 100"]);
});

Deno.test("a backlog that stops before its end is requested again, one that has ended is not", async () => {
  const { runtime, backlog, come, end, requested } = scene();
  backlog.look();
  come(7);
  backlog.look();
  assert.deepEqual(requested(), []);
  await runtime.clock.advance(2_000);
  backlog.look();
  backlog.look();
  assert.deepEqual(requested(), ["offline_batch 100"]);
  end();
  await runtime.clock.advance(60_000);
  backlog.look();
  assert.deepEqual(requested(), []);
});

Deno.test("a backlog whose end is never told is requested three times more within a minute, and then no longer", async () => {
  const { runtime, backlog, come, requested } = scene();
  come(7);
  for (let second = 0; second < 3_600; second += 5) {
    await runtime.clock.advance(5_000);
    backlog.look();
    if (second === 55) assert.deepEqual(requested(), Array(3).fill("offline_batch 100"));
  }
  assert.deepEqual(requested(), []);
  come(1);
  await runtime.clock.advance(2_000);
  backlog.look();
  assert.deepEqual(requested(), ["offline_batch 100"], "it goes on after all");
});
