/**
 * `deno task failures [JOURNEY…]`: does what a gateway does with each call of its store broken in turn, refused, with an
 * unknown result, and late, and holds what is left in the store against a run in which nothing broke: nothing missing,
 * nothing twice (promises 1 to 4). Exits 1 when something differs.
 */
import { Argument } from "commander";
import { parsed, scriptCommand, whole } from "./command.ts";
import { FAULTS } from "./failures/faults.ts";
import { JOURNEYS } from "./failures/journeys.ts";
import { tryAll } from "./failures/try_all.ts";

const command = scriptCommand("failures", "Breaks each call of the store in turn, and looks at what is left")
  .addArgument(new Argument("[journeys...]", "which; all if left out").choices(JOURNEYS.map(({ name }) => name)))
  .option("--up-to <n>", "break no later call than this of a journey", whole);
const { options: { upTo }, args } = parsed<{ upTo?: number }>(command);

let points = 0;
let broken = 0;
for (const journey of JOURNEYS.filter(({ name }) => args.length === 0 || args.includes(name))) {
  for (const fault of FAULTS) {
    const tried = await tryAll(journey, fault, upTo);
    points += tried.points;
    broken += tried.broken.length;
    console.log(`${journey.name}, ${fault}: ${tried.points} points, ${tried.broken.length} broken`);
    for (const sentence of tried.broken) console.log(`  BROKEN ${sentence}`);
  }
}
console.log(`\n${points} points, ${broken} broken`);
Deno.exit(broken === 0 ? 0 : 1);
