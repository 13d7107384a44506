/**
 * `deno task chaos [NAME…]`: kill -9 under load, on loopback, bounded; exit 1 when a promise broke. `machines` strikes many
 * machines on one PostgreSQL or one `denokv`, and runs only where it is named.
 */
import { Argument, Option } from "commander";
import { describeEventFlood, eventFlood } from "./chaos/event_flood.ts";
import { describePacedRun, pacedRun, type PacedRunOptions } from "./chaos/paced_run.ts";
import { parsed, scriptCommand, whole } from "./command.ts";

interface Options {
  kills?: number;
  messages?: number;
  store: "postgres" | "denokv";
  lines: number;
  out: number;
  in: number;
  minutes: number;
}

const command = scriptCommand("chaos", "Kills gateways under load and holds them to their promises")
  .addArgument(
    new Argument("[names...]", "which; paced and events if left out").choices(["paced", "events", "machines"]),
  )
  .option("--kills <n>", "how often a process is killed: 20 of paced, 100 of events, 160 of machines", whole)
  .option("--messages <n>", "paced, events: how many go each way: 200 and 2,000", whole)
  .addOption(
    new Option("--store <kind>", "machines: what they share").choices(["postgres", "denokv"]).default("postgres"),
  )
  .option("--lines <n>", "machines: lines", whole, 60)
  .option("--out <n>", "machines: messages that go out", whole, 20_000)
  .option("--in <n>", "machines: messages that come in", whole, 5_000)
  .option("--minutes <n>", "machines: the most that the blows may take", whole, 30);
const { options: { kills, messages, ...options }, args } = parsed<Options>(command);
const names = args.length > 0 ? args : ["paced", "events"];
const report = (line: string) => console.log(`  ${line}`);
let broken = 0;

function conclude(name: string, result: { broken: string[] }): void {
  console.log(`${name}: ${JSON.stringify({ ...result, broken: result.broken.length })}`);
  for (const sentence of result.broken.slice(0, 20)) console.log(`  BROKEN ${sentence}`);
  broken += result.broken.length;
}

if (names.includes("paced")) {
  const options: PacedRunOptions = {
    messages: messages ?? 200,
    lines: 2,
    kills: kills ?? 20,
    delayMinMs: 300,
    delayMaxMs: 1_300,
    killAfterMs: [300, 2_000],
    report,
  };
  console.log(`A paced run of ${options.messages} messages on two lines, killed again and again`);
  const result = await pacedRun(options);
  console.log();
  describePacedRun(result, options).forEach(report);
  conclude("paced", result);
}
if (names.includes("events")) {
  const each = messages ?? 2_000;
  console.log(`${each} incoming and ${each} outgoing messages, killed again and again`);
  const result = await eventFlood({ messages: each, kills: kills ?? 100, killAfterMs: [200, 2_000], report });
  console.log();
  describeEventFlood(result).forEach(report);
  conclude("events", result);
}
if (names.includes("machines")) {
  const { machines } = await import("./chaos/machines.ts");
  const { store, lines, out, in: incoming, minutes } = options;
  const run = { store, lines, outgoing: out, incoming, kills: kills ?? 160, minutes, report };
  console.log(`Two APIs and three workers on one store: ${JSON.stringify(run)}`);
  conclude("machines", await machines(run));
}
Deno.exit(broken === 0 ? 0 : 1);
