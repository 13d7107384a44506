/**
 * Prints what the executable weighs: its size, the time until a new gateway answers its first request with 200, and
 * what it keeps resident after ten seconds at rest. Of five starts the best counts: other work on the machine only adds.
 */
import { sleep, systemClock } from "../../src/runtime.ts";

const EXECUTABLE = Deno.args[0] ?? "dist/paloma";
const GOALS = { megabytes: 125, firstAnswerMs: 300, residentMegabytes: 120 };
const STARTS = 5;
const REST_MS = 10_000;
const GIVE_UP_MS = 30_000;

interface Start {
  firstAnswerMs: number;
  residentMegabytes: number;
}

/** Starts a gateway in a new folder on this port, and ends it. */
async function measure(port: number, restMs: number): Promise<Start> {
  const dataDir = await Deno.makeTempDir({ prefix: "paloma-figures-" });
  const begun = performance.now();
  const child = new Deno.Command(EXECUTABLE, {
    args: ["serve"],
    clearEnv: true,
    env: { PALOMA_DATA_DIR: dataDir, PALOMA_PORT: String(port), PALOMA_LOG_LEVEL: "warn" },
    stdout: "null",
  }).spawn();
  try {
    while (!await answers(`http://127.0.0.1:${port}/healthz`)) {
      if (performance.now() - begun > GIVE_UP_MS) throw new Error("the gateway did not come up");
      await sleep(systemClock, 5);
    }
    const firstAnswerMs = performance.now() - begun;
    await sleep(systemClock, restMs);
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await Deno.readTextFile(`/proc/${child.pid}/status`)) ?? [];
    return { firstAnswerMs, residentMegabytes: Number(kilobytes) * 1024 / 1e6 };
  } finally {
    child.kill("SIGTERM");
    await child.status;
    await Deno.remove(dataDir, { recursive: true });
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url);
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    return false;
  }
}

/** A port that was free a moment ago. */
function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}

const starts: Start[] = [];
for (let start = 1; start <= STARTS; start++) starts.push(await measure(freePort(), start === STARTS ? REST_MS : 0));
const megabytes = (await Deno.stat(EXECUTABLE)).size / 1e6;
const firstAnswerMs = Math.min(...starts.map((start) => start.firstAnswerMs));
const { residentMegabytes } = starts.at(-1)!;
console.log(`size         ${megabytes.toFixed(0)} MB   (goal ${GOALS.megabytes})`);
console.log(`first 200    ${firstAnswerMs.toFixed(0)} ms   (goal ${GOALS.firstAnswerMs})`);
console.log(`resident     ${residentMegabytes.toFixed(0)} MB   (goal ${GOALS.residentMegabytes})`);
