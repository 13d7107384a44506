/**
 * 90 days of 20 lines with mixed plans in zones with both clock changes, 200,000 messages: bounds of the pause, hours,
 * new chats, ramps, the order of each chat, and that nothing waits for ever. Takes seeds; some minutes each.
 *
 *     deno run -A scripts/checks/queue_simulation.ts [--messages N] [SEED…]
 */
import { parseArgs } from "node:util";
import { simulate } from "../../tests/support/queue_simulation.ts";

const { values, positionals } = parseArgs({
  args: Deno.args,
  options: { messages: { type: "string", default: "200000" } },
  allowPositionals: true,
});
for (const seed of positionals.length > 0 ? positionals.map(Number) : [1]) {
  const began = performance.now();
  const result = await simulate({ seed, days: 90, lines: 20, messages: Number(values.messages) });
  console.log(`seed ${seed}: ${JSON.stringify(result)}, in ${((performance.now() - began) / 1000).toFixed(0)} s`);
}
