/**
 * Ten thousand lines on twenty workers, by the product's own ownership on a store in memory, a network that takes 200 ms
 * to connect a line (each worker begins one every 15 ms) and a simulated clock: how evenly lines are spread, and how
 * long it takes until all are held after a start, after a worker died, after one came and after a rolling restart.
 */
import { Cluster } from "../tests/support/cluster.ts";
import { parsed, scriptCommand, whole } from "./command.ts";

const command = scriptCommand(
  "simulate_cluster",
  "Simulates how lines are spread over workers, and how long that takes",
)
  .option("--lines <n>", "how many there are", whole, 10_000)
  .option("--workers <n>", "how many hold them", whole, 20);
const { options: { lines, workers } } = parsed<{ lines: number; workers: number }>(command);

function report(what: string, cluster: Cluster, tookMs: number, begun: number): void {
  const spread = cluster.spread();
  const seconds = (tookMs / 1000).toFixed(1).padStart(6);
  const commits = String(cluster.disk.commits - begun).padStart(6);
  console.log(
    `${what.padEnd(44)} ${seconds} s   ${spread[0]}–${spread.at(-1)} lines a worker   ${commits} commits   ` +
      `${cluster.doubled} on two sockets`,
  );
}

async function step(what: string, cluster: Cluster, work: () => Promise<unknown> | void): Promise<void> {
  const begun = cluster.disk.commits;
  const from = cluster.clock.now();
  await work();
  await cluster.until(() => cluster.isEven && cluster.doubled === 0, 600_000);
  report(what, cluster, cluster.clock.now() - from, begun);
}

const cluster = new Cluster(lines);
await cluster.makeLines();
await step(`${workers} workers start together`, cluster, async () => {
  for (let i = 0; i < workers; i++) await cluster.join();
});

let fewest = lines;
await step("one is killed: all on other sockets", cluster, () => [...cluster.workers][3]!.kill());
await step("one comes: even again", cluster, () => cluster.join());
await step("rolling restart, one after another", cluster, async () => {
  for (const worker of [...cluster.workers]) {
    let stopped = false;
    void worker.stop().then(() => stopped = true);
    await cluster.until(() => (fewest = Math.min(fewest, cluster.up), stopped), 60_000);
    await cluster.join();
    await cluster.until(() => cluster.workers.size === workers && cluster.up === lines, 60_000);
  }
});
console.log(`  at least ${fewest} of ${lines} lines were up at each moment of the restart`);

const begun = cluster.disk.commits;
await cluster.clock.advance(10_000);
console.log(`idle: ${((cluster.disk.commits - begun) / 10).toFixed(1)} commits a second, for all workers together`);
Deno.exit(0);
