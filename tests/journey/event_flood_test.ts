/** The flood of events in small; `deno task chaos events` runs the large one. */
import assert from "node:assert/strict";
import { eventFlood } from "../../scripts/chaos/event_flood.ts";

Deno.test("messages that flow in and out while the gateway is killed are each reported, once in the feed, in order", async () => {
  const { broken, ...result } = await eventFlood({
    messages: 60,
    kills: 4,
    killAfterMs: [300, 1_500],
    report: () => {},
  });
  assert.deepEqual(broken, []);
  const { incoming, outgoing, kills, watched } = result;
  assert.deepEqual({ incoming, outgoing, kills, watched }, { incoming: 60, outgoing: 60, kills: 4, watched: 180 });
});
