/** What a gateway does, with calls of its store, the web and the disk broken in turn: `deno task failures` in full. */
import assert from "node:assert/strict";
import { ON_DISK } from "../../scripts/failures/disk.ts";
import { type Fault, STORE_FAULTS } from "../../scripts/failures/faults.ts";
import { FILES } from "../../scripts/failures/files.ts";
import type { Journey } from "../../scripts/failures/journey.ts";
import { JOURNEYS } from "../../scripts/failures/journeys.ts";
import { MOVES } from "../../scripts/failures/moves.ts";
import { OTHERS } from "../../scripts/failures/others.ts";
import { TRIALS } from "../../scripts/failures/trials.ts";
import { inWorld, tryAll } from "../../scripts/failures/try_all.ts";

/** Those of many or slow calls, of which some are broken here. */
const LONG = new Set([...OTHERS, ...MOVES, ...ON_DISK].map(({ name }) => name));

/** Files take real time: of them, what breaks where they are kept. */
const FILE_TRIALS = new Set(FILES.map(({ name }) => name));
const OF_THE_STORE = new Set<Fault>(STORE_FAULTS);

for (const trial of TRIALS) {
  const ofFiles = FILE_TRIALS.has(trial.name);
  if (ofFiles && /^(sweep|upload)/.test(trial.name)) continue;
  for (const fault of trial.faults) {
    if (ofFiles && OF_THE_STORE.has(fault) && (fault !== "full" || trial.name.endsWith("bucket"))) continue;
    Deno.test(`${trial.name}: whichever call is broken (${fault}), nothing is missing and nothing twice`, async () => {
      const { points, broken } = await tryAll(trial, fault, {
        most: ofFiles ? 2 : LONG.has(trial.name) ? 8 : Infinity,
      });
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
  const { broken } = await tryAll(inWorld(careless), "unknown");
  assert.match(broken.join(), /2 in place of 1 rows of message/);
});
