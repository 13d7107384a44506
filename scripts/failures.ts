/**
 * `deno task failures [TRIAL…]`: does what a gateway does with each call of its store, of the web or of the disk broken in
 * turn: refused, with an unknown result, late, or as the last before the process ends. Holds what is left against a run in
 * which nothing broke: nothing missing, nothing twice (promises 1 to 4). Exits 1 when something differs.
 */
import { Argument } from "commander";
import { parsed, scriptCommand, whole } from "./command.ts";
import { TRIALS } from "./failures/trials.ts";
import { tryAll } from "./failures/try_all.ts";

const command = scriptCommand("failures", "Breaks each call of store, web and disk in turn, and looks at what is left")
  .addArgument(new Argument("[trials...]", "which; all if left out").choices(TRIALS.map(({ name }) => name)))
  .option("--up-to <n>", "break no later call than this of a trial", whole);
const { options: { upTo }, args } = parsed<{ upTo?: number }>(command);

let points = 0;
let broken = 0;
for (const trial of TRIALS.filter(({ name }) => args.length === 0 || args.includes(name))) {
  for (const fault of trial.faults) {
    const tried = await tryAll(trial, fault, { upTo });
    points += tried.points;
    broken += tried.broken.length;
    console.log(`${trial.name}, ${fault}: ${tried.points} points, ${tried.broken.length} broken`);
    for (const sentence of tried.broken) console.log(`  BROKEN ${sentence}`);
  }
}
console.log(`\n${points} points, ${broken} broken`);
Deno.exit(broken === 0 ? 0 : 1);
