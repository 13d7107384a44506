/** What is known of groups: asked once for all who want it, and never as it was before a change. */
import assert from "node:assert/strict";
import type { GroupMetadata, WASocket } from "@whiskeysockets/baileys";
import { makeGroupCache } from "../../../../src/whatsapp/baileys/outgoing/group_cache.ts";
import { testRuntime } from "../../../support/runtime.ts";

const GROUP = "1-2@g.us";

/** The cache of a network that answers when the test says so. */
function cached() {
  const answers: PromiseWithResolvers<GroupMetadata>[] = [];
  const socket = {
    groupMetadata() {
      const answer = Promise.withResolvers<GroupMetadata>();
      answers.push(answer);
      return answer.promise;
    },
  } as unknown as WASocket;
  const answer = (size: number) => answers.at(-1)!.resolve({ id: GROUP, size } as GroupMetadata);
  return { cache: makeGroupCache(() => socket, testRuntime()), answers, answer };
}

Deno.test("a thousand who want to know a group at once ask the network once", async () => {
  const { cache, answers, answer } = cached();
  const wanted = Array.from({ length: 1_000 }, () => cache.metadata(GROUP));
  answer(3);
  assert.deepEqual(new Set((await Promise.all(wanted)).map(({ size }) => size)), new Set([3]));
  assert.equal((await cache.metadata(GROUP)).size, 3);
  assert.equal(answers.length, 1);
});

for (const ask of ["metadata", "fresh"] as const) {
  Deno.test(`what was asked (${ask}) before a change is not kept after it`, async () => {
    const { cache, answers, answer } = cached();
    const before = cache[ask](GROUP);
    cache.forget(GROUP);
    answer(3);
    assert.equal((await before).size, 3);
    assert.equal(await cache.cached(GROUP), undefined);
    const after = cache.metadata(GROUP);
    answer(2);
    assert.equal((await after).size, 2);
    assert.equal(answers.length, 2);
  });
}

Deno.test("after a failure the network is asked again", async () => {
  const { cache, answers, answer } = cached();
  const failed = cache.metadata(GROUP);
  answers[0]!.reject(new Error("not in this group"));
  await assert.rejects(failed, /not in this group/);
  const again = cache.metadata(GROUP);
  answer(3);
  assert.equal((await again).size, 3);
});
