/**
 * Whatever the network lets through becomes an event: a simulated phone sends messages that are long in one field each, from 1
 * KB up, and the gateway must tell each of them once and go on. A minute or two a field.
 */
import { openStage, withStage } from "../../tests/support/stage.ts";
import { LONG, sendLong } from "../../tests/support/long_messages.ts";
import { parsed, scriptCommand, whole } from "../command.ts";

const LINE = "4915560000031";
const FRIEND = "4917560000031";
const LEAST = 1_024;

const command = scriptCommand("sizes", "Receives messages of every size, long in every field that can be")
  .argument("[fields...]", `some of ${Object.keys(LONG).join(", ")}; all if left out`)
  .option("--steps <n>", "sizes from 1 KB to the most", whole, 200)
  .option("--most <bytes>", "the largest", whole, 1_048_576);
const { options: { steps, most }, args } = parsed<{ steps: number; most: number }>(command);

const kinds = args.length > 0 ? args : Object.keys(LONG);
const sizes = Array.from({ length: steps }, (_, i) => Math.round(LEAST + (most - LEAST) * i / Math.max(1, steps - 1)));
for (const kind of kinds) {
  const began = performance.now();
  // A network of its own for each: it keeps all that was sent in memory.
  await withStage(openStage, async (stage) => {
    await stage.addPhone(FRIEND, "Ana");
    const line = await stage.linkLine(LINE);
    const { sent, events } = await sendLong(stage, line, { from: FRIEND, kinds: [kind], sizes });
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    console.log(`${kind} in ${steps} sizes up to ${most} bytes: ${sent} sent, ${events} events, ${seconds} s`);
  });
}
