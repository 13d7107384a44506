/** What the help says. */
const HELP = `Breaks the machine under a gateway that is loaded, on loopback, and holds it to its promises:

    deno run -A scripts/checks/failures.ts [full-disk] [held-lock] [sigterm] [--seconds N] [--times N] [--lines N]

  full-disk   a tmpfs with the data is full for 130 s; mounts one, so it needs root
  held-lock   another process holds the database's lock for 25 s
  sigterm     SIGTERM and a new start, 20 times

Without a name all three; the gateway has to be back within 5 s each time. PALOMA_EXECUTABLE names an executable to run in place of the source. Ends with a line of
JSON; exits 0 when all held, 1 when a promise broke, 2 for wrong usage, 3 where no tmpfs could be mounted.`;

import { parseArgs } from "node:util";
import { describeFailure, type FailureResult, fullDisk, heldLock, terminated } from "../chaos/failures.ts";
import { onSmallDisk } from "../../tests/support/small_disk.ts";

const LINES = 4;
const BACK_WITHIN_MS = 5_000;
const DRAINS_WITHIN_MS = 10_000;
const DISK_MEGABYTES = 32;

function usage(error: string): never {
  console.error(`${error}\n\n${HELP}`);
  Deno.exit(2);
}

function parsed() {
  const flag = { type: "string" } as const;
  const options = { seconds: flag, times: flag, lines: flag, help: { type: "boolean", short: "h" } } as const;
  try {
    return parseArgs({ args: Deno.args, options, allowPositionals: true });
  } catch (error) {
    return usage((error as Error).message);
  }
}

const { values, positionals } = parsed();
if (values.help) {
  console.log(HELP);
  Deno.exit(0);
}
for (const [name, value] of Object.entries(values)) {
  if (!(Number(value) > 0 && Number(value) <= 600)) usage(`--${name} takes a number from 1 to 600`);
}
const number = (value: string | undefined, usual: number) => Number(value ?? usual);
const report = (line: string) => console.log(`  ${line}`);
const shared = { lines: number(values.lines, LINES), backWithinMs: BACK_WITHIN_MS, report };
const FAILURES: Record<string, () => Promise<FailureResult | null>> = {
  "full-disk": () =>
    onSmallDisk(DISK_MEGABYTES, (folder) => fullDisk({ ...shared, folder, seconds: number(values.seconds, 130) })),
  "held-lock": () => heldLock({ ...shared, seconds: number(values.seconds, 25) }),
  sigterm: () => terminated({ ...shared, times: number(values.times, 20), drainsWithinMs: DRAINS_WITHIN_MS }),
};
for (const name of positionals) if (!(name in FAILURES)) usage(`there is no failure ${name}`);

const results: Record<string, unknown> = {};
let code = 0;
for (const name of positionals.length > 0 ? positionals : Object.keys(FAILURES)) {
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
