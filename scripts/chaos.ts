/**
 * `deno task chaos [paced|events] [--kills N]`: kill -9 under load, on loopback, bounded; exit 1 when a promise broke.
 * `deno task chaos machines [--lines 60] [--out 20000] [--in 5000] [--kills 160] [--minutes 30] [--store denokv]`: many
 * machines on one PostgreSQL, or on one `denokv`.
 */
import { describeEventFlood, eventFlood } from "./chaos/event_flood.ts";
import { describePacedRun, pacedRun, type PacedRunOptions } from "./chaos/paced_run.ts";

const which = Deno.args.find((arg) => !arg.startsWith("-")) ?? "all";
const killsAt = Deno.args.indexOf("--kills");
const kills = killsAt >= 0 ? Number(Deno.args[killsAt + 1]) : undefined;
const report = (line: string) => console.log(`  ${line}`);
let broken = 0;

function conclude(name: string, result: { broken: string[] }): void {
  console.log(`${name}: ${JSON.stringify({ ...result, broken: result.broken.length })}`);
  for (const sentence of result.broken.slice(0, 20)) console.log(`  BROKEN ${sentence}`);
  broken += result.broken.length;
}

if (which === "all" || which === "paced") {
  console.log("A paced run of 200 messages on two lines, killed again and again");
  const options: PacedRunOptions = {
    messages: 200,
    lines: 2,
    kills: kills ?? 20,
    delayMinMs: 300,
    delayMaxMs: 1_300,
    killAfterMs: [300, 2_000],
    report,
  };
  const result = await pacedRun(options);
  console.log();
  describePacedRun(result, options).forEach(report);
  conclude("paced", result);
}
if (which === "all" || which === "events") {
  console.log("2,000 incoming and 2,000 outgoing messages, killed again and again");
  const result = await eventFlood({ messages: 2_000, kills: kills ?? 100, killAfterMs: [200, 2_000], report });
  console.log();
  describeEventFlood(result).forEach(report);
  conclude("events", result);
}
if (which === "machines") {
  const number = (flag: string, usual: number) => {
    const at = Deno.args.indexOf(flag);
    return at >= 0 ? Number(Deno.args[at + 1]) : usual;
  };
  const { machines } = await import("./chaos/machines.ts");
  const options = {
    store: Deno.args.includes("denokv") ? "denokv" as const : "postgres" as const,
    lines: number("--lines", 60),
    outgoing: number("--out", 20_000),
    incoming: number("--in", 5_000),
    kills: kills ?? 160,
    minutes: number("--minutes", 30),
    report,
  };
  console.log(`Two APIs and three workers on one store: ${JSON.stringify(options)}`);
  conclude("machines", await machines(options));
}
Deno.exit(broken === 0 ? 0 : 1);
