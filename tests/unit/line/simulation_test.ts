/** Months of a queue in seconds; `scripts/checks/queue_simulation.ts` runs the whole. */
import { simulate } from "../../support/queue_simulation.ts";

for (const seed of [1, 2]) {
  Deno.test(`over weeks, pauses, hours, new chats, ramps and the order of chats hold, and nothing starves (seed ${seed})`, async () => {
    await simulate({ seed, days: 60, lines: 5, messages: 1_500 });
  });
}
