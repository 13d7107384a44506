/**
 * Ten thousand lines on twenty workers, by the product's own ownership on a store in memory, a network that takes 200 ms
 * to connect a line (each worker begins one every 15 ms) and a simulated clock: how evenly lines are spread, and how
 * long it takes until all are held after a start, after a worker died, after one came and after a rolling restart. Then
 * sixty lines on three workers that are killed and frozen one after another: how long a line has no socket.
 */
import { Cluster, type SimulatedWorker } from "../tests/support/cluster.ts";
import { seededRandom } from "../tests/support/runtime.ts";
import { percentile } from "./bench/measure.ts";
import { parsed, scriptCommand, whole } from "./command.ts";

const command = scriptCommand(
  "simulate_cluster",
  "Simulates how lines are spread over workers, and how long that takes",
)
  .option("--lines <n>", "how many there are", whole, 10_000)
  .option("--workers <n>", "how many hold them", whole, 20)
  .option("--blows <n>", "how often one of three workers is killed or frozen", whole, 300);
const { options: { lines, workers, blows } } = parsed<{ lines: number; workers: number; blows: number }>(command);

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
await step("one is killed: all on other sockets", cluster, () => [...cluster.workers].at(-1)!.kill());
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

const silences = await strike(blows);
const seconds = (percent: number) => `${(percentile(silences, percent) / 1000).toFixed(1)} s`;
console.log(
  `${blows} blows: ${silences.length} times a line had no socket, for ${seconds(50)} (median), ${seconds(90)} (p90), ` +
    `${seconds(99)} (p99), ${seconds(100)} (longest)`,
);
Deno.exit(0);

/** Resolves to how long lines had no socket at a worker that was awake, ms, each from the last blow at its owner. */
async function strike(blows: number): Promise<number[]> {
  const cluster = new Cluster(60);
  const { clock } = cluster;
  const random = seededRandom(7);
  const frozen = new Set<SimulatedWorker>();
  const holders = new Map<string, SimulatedWorker>();
  const downSince = new Map<string, number>();
  const silences: number[] = [];
  const awake = () => [...cluster.workers].filter((worker) => !frozen.has(worker));
  const look = () => {
    for (const worker of awake()) {
      for (const line of worker.open) {
        holders.set(line, worker);
        const since = downSince.get(line);
        if (since !== undefined) silences.push(clock.now() - since);
        downSince.delete(line);
      }
    }
  };
  const pass = async (ms: number) => {
    const end = clock.now() + ms;
    await cluster.until(() => (look(), clock.now() >= end), ms + 100, 50);
  };

  await cluster.makeLines();
  for (let i = 0; i < 3; i++) await cluster.join();
  await pass(20_000);
  for (let i = 0; i < blows; i++) {
    await pass(random.between(1_000, 8_000));
    while (cluster.workers.size < 3 || awake().length < 2) await pass(50);
    const struck = awake()[random.between(0, awake().length - 1)]!;
    const lost = [...holders].flatMap(([line, holder]) => holder === struck ? line : []);
    for (const line of new Set([...lost, ...struck.leases.things()])) downSince.set(line, clock.now());
    if (random.between(1, 10) > 1) {
      struck.kill();
      clock.after(random.between(700, 1_200), () => void cluster.join());
    } else {
      frozen.add(struck);
      struck.freeze();
      clock.after(20_000, () => {
        frozen.delete(struck);
        struck.thaw();
      });
    }
  }
  await pass(30_000);
  return silences;
}
