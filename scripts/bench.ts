/**
 * `deno task bench [NAME…]`: measures against a raw baseline in the same run, round by round, and prints ratios with their
 * goals (docs/benchmarks.md). Times of a shared machine mean nothing by themselves.
 */
import { Argument } from "commander";
import { api } from "./bench/api.ts";
import { chats } from "./bench/chats.ts";
import { crowd } from "./bench/crowd.ts";
import { groups } from "./bench/groups.ts";
import { history } from "./bench/history.ts";
import { idle } from "./bench/idle.ts";
import { lines } from "./bench/lines.ts";
import { machines } from "./bench/machines.ts";
import { neighbours } from "./bench/neighbours.ts";
import { type Bench, type BenchOptions, rowOf } from "./bench/measure.ts";
import { programs } from "./bench/programs.ts";
import { queue } from "./bench/queue.ts";
import { receive } from "./bench/receive.ts";
import { retention } from "./bench/retention.ts";
import { postgres } from "./bench/postgres.ts";
import { reindex } from "./bench/reindex.ts";
import { start } from "./bench/start.ts";
import { way } from "./bench/way.ts";
import { webhooks } from "./bench/webhooks.ts";
import { parsed, scriptCommand, whole } from "./command.ts";

const BENCHES: readonly Bench[] = [
  lines,
  idle,
  api,
  queue,
  history,
  chats,
  retention,
  reindex,
  webhooks,
  groups,
  neighbours,
  way,
  receive,
  crowd,
  start,
  programs,
  postgres,
  machines,
];

const command = scriptCommand("bench", "Measures against a raw baseline in the same run (docs/benchmarks.md)")
  .addArgument(new Argument("[names...]", "which; all if left out").choices(BENCHES.map(({ name }) => name)))
  .option("--rounds <n>", "rounds of baseline and subject, whose median counts", whole, 3)
  .option("--lines <n>", "lines, idle, way, crowd: how many there are", whole, 100)
  .option("--messages <n>", "history, retention, reindex: messages in the account", whole, 1_000_000)
  .option("--backlog <n>", "api, queue: messages that wait", whole, 100_000)
  .option("--deliveries <n>", "webhooks: deliveries a round", whole, 2_000)
  .option("--noise <text>", "neighbours: kinds of noise whose name has this in it", "");
const { options, args: names } = parsed<Omit<BenchOptions, "report">>(command);
const report = (line: string) => console.log(`    ${line}`);

for (const bench of BENCHES.filter(({ name }) => names.length === 0 || names.includes(name))) {
  console.log(`\n${bench.name}: ${bench.about}`);
  for (const result of await bench.run({ ...options, report })) console.log(rowOf(result));
}
// Libraries under test leave timers behind.
Deno.exit(0);
