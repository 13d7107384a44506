/** What the phone of a restricted account may still do. */
import assert from "node:assert/strict";
import { startNetwork } from "../../../src/sandbox/network.ts";
import { testRuntime } from "../../support/runtime.ts";

const [ANA, BEN] = ["4917000000001", "4917000000002"] as const;

Deno.test("the phone of a restricted account goes on in chats that others write in, by number and by LID", async () => {
  const runtime = testRuntime();
  const network = await startNetwork({ runtime });
  try {
    const [ana, ben] = [network.addPhone(ANA), network.addPhone(BEN)];
    await ben.sendMessage({ to: ANA, text: "Is my order ready?" });
    const { directory, trust } = network.switchboard;
    trust.restrict(directory.account(ANA)!, runtime.clock.now() + 60_000);
    await ana.sendMessage({ to: BEN, text: "It is" });
    const { id } = await ana.sendMessage({ to: ben.lid, text: "Come at noon" });
    await ana.edit(id, "Come at one");
    await ben.idle();
    assert.deepEqual(ben.inbox().map(({ text }) => text), ["It is", "Come at one"]);
  } finally {
    await network.close();
  }
});
