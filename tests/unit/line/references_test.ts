/** Which line a message is referred to on. */
import assert from "node:assert/strict";
import { newLine } from "../../../src/line/line.ts";
import { References } from "../../../src/line/references.ts";
import { lineKeys } from "../../../src/line/rows.ts";
import { Change } from "../../../src/store/kv.ts";
import { ACCOUNT, connectedWorld } from "../../support/line_world.ts";

Deno.test("a message that a line's last number sent is referred to on a line that received it, if there is one", async () => {
  const world = await connectedWorld();
  const { id, networkId } = await world.accept("ses_1", { to: "1-2@g.us" });
  await world.clock.advance(0);
  assert.equal((await world.message(id)).status, "sent");
  const { kv, network } = world;
  const other = newLine({ id: "ses_2", accountId: ACCOUNT, name: "other", pairingPhone: null, createdAt: 2 });
  await kv.commit(
    new Change().set(lineKeys.line("ses_1"), { ...await world.line(), numberSince: world.clock.now() + 1 })
      .set(lineKeys.line("ses_2"), other)
      .set(lineKeys.lineOfAccount(ACCOUNT, 1, "ses_1"), "ses_1")
      .set(lineKeys.lineOfAccount(ACCOUNT, 2, "ses_2"), "ses_2"),
  );
  const references = new References({ kv, network });
  const find = async () => {
    const { lineId, isOfOtherNumber } = await references.find(ACCOUNT, networkId, { sessionId: null });
    return [lineId, isOfOtherNumber];
  };
  assert.deepEqual(await find(), ["ses_1", true]);
  network.recalled.set(`ses_2 ${networkId}`, {
    chat: "1-2@g.us",
    participant: "34600000001@s.whatsapp.net",
    fromMe: false,
    number: "34600000001",
    kind: "text",
    text: "hello",
    caption: null,
    filename: null,
  });
  assert.deepEqual(await find(), ["ses_2", false]);
  await world.supervisor.stop();
});
