/** What a gateway does, with each call of its store broken in turn: `deno task failures` in full. */
import assert from "node:assert/strict";
import { FAULTS } from "../../scripts/failures/faults.ts";
import type { Journey } from "../../scripts/failures/journey.ts";
import { JOURNEYS } from "../../scripts/failures/journeys.ts";
import { tryAll } from "../../scripts/failures/try_all.ts";

for (const journey of JOURNEYS) {
  for (const fault of FAULTS) {
    Deno.test(`${journey.name}: whichever call is broken (${fault}), nothing is missing and nothing twice`, async () => {
      const { points, broken } = await tryAll(journey, fault);
      assert.deepEqual(broken, []);
      assert.ok(points > 0);
    });
  }
}

Deno.test("what a client repeats without a key is found twice", async () => {
  const careless: Journey = {
    ...JOURNEYS[0]!,
    async act(world, sessionId) {
      const json = { sessionId, to: "491555000001", text: "hello" };
      return (await world.call("POST", "/v1/messages/send/text", { json })).ok;
    },
  };
  const { broken } = await tryAll(careless, "unknown");
  assert.match(broken.join(), /2 in place of 1 rows of message/);
});
