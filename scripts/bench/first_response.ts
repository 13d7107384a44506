/** A server as a process of its own: its start until the first 200, and its memory then. Linux only: it reads `/proc`. */
import { sleep, systemClock } from "../../src/runtime.ts";
import { freePort } from "../../tests/support/free_port.ts";
import { processorMs, residentBytes } from "../proc.ts";

export interface FirstResponse {
  /** From the start of the process to its first 200. */
  tookMs: number;
  /** Processor time of the process until then, which other work on the machine does not change. */
  cpuMs: number;
  /** Resident memory after a rest, bytes. */
  bytes: number;
  /** Of the first request below `/v1`, after that rest. */
  apiMs: number;
  /** Resident memory after another rest, bytes. */
  apiBytes: number;
}

interface ServerStart {
  command: string;
  args: readonly string[];
  /** How long it rests before its memory is looked at. */
  restMs: number;
}

const GIVE_UP_MS = 30_000;

/** Starts the server, which answers `/healthz` at PALOMA_PORT, on a new PALOMA_DATA_DIR, and ends it. */
export async function firstResponse({ command, args, restMs }: ServerStart): Promise<FirstResponse> {
  const dataDir = await Deno.makeTempDir({ prefix: "paloma-start-" });
  const port = freePort();
  const began = performance.now();
  const child = new Deno.Command(command, {
    args: [...args],
    clearEnv: true,
    env: {
      // Where Deno keeps what it has fetched and compiled.
      HOME: Deno.env.get("HOME") ?? "/",
      ...Object.fromEntries(Object.entries(Deno.env.toObject()).filter(([name]) => name === "DENO_DIR")),
      PALOMA_DATA_DIR: dataDir,
      PALOMA_PORT: String(port),
      PALOMA_LOG_LEVEL: "warn",
    },
    stdout: "null",
  }).spawn();
  try {
    while (!await answers(`http://127.0.0.1:${port}/healthz`)) {
      if (performance.now() - began > GIVE_UP_MS) throw new Error(`${command} did not come up`);
      await sleep(systemClock, 2);
    }
    const tookMs = performance.now() - began;
    const cpuMs = await processorMs(child.pid);
    await sleep(systemClock, restMs);
    const bytes = await residentBytes(child.pid);
    const asked = performance.now();
    await (await fetch(`http://127.0.0.1:${port}/v1/sessions`)).body?.cancel();
    const apiMs = performance.now() - asked;
    await sleep(systemClock, restMs);
    return { tookMs, cpuMs, bytes, apiMs, apiBytes: await residentBytes(child.pid) };
  } finally {
    child.kill("SIGTERM");
    await child.status;
    await Deno.remove(dataDir, { recursive: true });
  }
}

export async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url);
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    return false;
  }
}
