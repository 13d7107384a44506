/**
 * 90 days of 20 lines with mixed plans in zones with both clock changes, 200,000 messages: bounds of the pause, hours,
 * new chats, ramps, the order of each chat, and that nothing waits for ever. Some minutes a seed.
 */
import { simulate } from "../../tests/support/queue_simulation.ts";
import { parsed, scriptCommand, whole } from "../command.ts";

const command = scriptCommand("queue_simulation", "Simulates 90 days of 20 lines, and checks each departure")
  .argument("[seeds...]", "each makes a run of its own; 1 if left out")
  .option("--messages <n>", "how many are sent", whole, 200_000);
const { options: { messages }, args } = parsed<{ messages: number }>(command);
for (const seed of args.length > 0 ? args.map(whole) : [1]) {
  const began = performance.now();
  const result = await simulate({ seed, days: 90, lines: 20, messages });
  console.log(`seed ${seed}: ${JSON.stringify(result)}, in ${((performance.now() - began) / 1000).toFixed(0)} s`);
}
