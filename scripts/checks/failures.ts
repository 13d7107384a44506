/**
 * Breaks the machine under a gateway that is loaded, on loopback, and holds it to its promises: it has to be back within
 * 5 s each time. PALOMA_EXECUTABLE names an executable to run in place of the source. Ends with a line of JSON; exits 0
 * when all held, 1 when a promise broke, 2 for wrong usage, 3 where no tmpfs could be mounted.
 */
import { Argument } from "commander";
import { describeFailure, type FailureResult, fullDisk, heldLock, terminated } from "../chaos/failures.ts";
import { onSmallDisk } from "../../tests/support/small_disk.ts";
import { parsed, scriptCommand, whole } from "../command.ts";

const BACK_WITHIN_MS = 5_000;
const DRAINS_WITHIN_MS = 10_000;
const DISK_MEGABYTES = 32;

const command = scriptCommand("failures", "Breaks the machine under a loaded gateway, and holds it to its promises")
  .addArgument(new Argument("[names...]", "which; all if left out").choices(["full-disk", "held-lock", "sigterm"]))
  .option("--seconds <n>", "how long the disk is full (130; needs root), or the database locked (25)", whole)
  .option("--times <n>", "SIGTERMs, each with a new start", whole, 20)
  .option("--lines <n>", "how many are loaded", whole, 4);
const { options: { seconds, times, lines }, args } = parsed<{ seconds?: number; times: number; lines: number }>(
  command,
);
const report = (line: string) => console.log(`  ${line}`);
const shared = { lines, backWithinMs: BACK_WITHIN_MS, report };
const FAILURES: Record<string, () => Promise<FailureResult | null>> = {
  "full-disk": () => onSmallDisk(DISK_MEGABYTES, (folder) => fullDisk({ ...shared, folder, seconds: seconds ?? 130 })),
  "held-lock": () => heldLock({ ...shared, seconds: seconds ?? 25 }),
  sigterm: () => terminated({ ...shared, times, drainsWithinMs: DRAINS_WITHIN_MS }),
};

const results: Record<string, unknown> = {};
let code = 0;
for (const name of args.length > 0 ? args : Object.keys(FAILURES)) {
  console.log(name);
  const result = await FAILURES[name]!();
  if (result === null) {
    report("no tmpfs could be mounted here");
    code ||= 3;
    results[name] = null;
    continue;
  }
  describeFailure(result).forEach(report);
  for (const sentence of result.broken.slice(0, 20)) report(`BROKEN ${sentence}`);
  if (result.broken.length > 0) code = 1;
  results[name] = { ...result, broken: result.broken.length };
}
console.log(JSON.stringify(results));
Deno.exit(code);
