/** The gateway as a process of a bench: the whole of it, as `paloma serve` runs it, on a data folder. */
import process from "node:process";
import { startGateway } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import type { SettingValues } from "../../src/settings.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { runAsChild } from "./child.ts";
import { countStoreCalls, type StoreCalls } from "./store_calls.ts";

export interface GatewayReady {
  /** `http://HOST:PORT` */
  url: string;
}

/** What the process reports when asked, for the time since it was last asked. */
export interface GatewayLoad extends StoreCalls {
  /** The longest that work held its event loop: processor time that the process used within one turn. */
  heldMs: number;
  /** The longest turn by the clock: on a shared machine most of it may be waiting for a processor. */
  turnMs: number;
  /** Processor time of the process. */
  usedMs: number;
  /** Resident memory, bytes: now, and at most. */
  bytes: number;
  peakBytes: number;
}

const LOOK_EVERY_MS = 10;

if (import.meta.main) {
  const storeCalls = countStoreCalls();
  await runAsChild<SettingValues>(async (settings) => {
    const config = readConfig({ PALOMA_PORT: "0", PALOMA_LOG_LEVEL: "warn", ...settings });
    const gateway = await startGateway({ config, runtime: systemRuntime(makeLog(config.logLevel)) });
    const ready: GatewayReady = { url: new URL(gateway.baseUrl).origin };
    let load: (() => Promise<GatewayLoad>) | null = null;
    // Sampling costs processor time: it begins with the first question.
    return { ready, answer: () => (load ??= watchLoad(storeCalls))(), stop: () => gateway.stop() };
  });
}

function watchLoad(storeCalls: () => StoreCalls): () => Promise<GatewayLoad> {
  let most = { heldMs: 0, turnMs: 0, peakBytes: 0 };
  let last = { at: performance.now(), usedMs: usedMs() };
  let askedAt = last.usedMs;
  let before = storeCalls();
  setInterval(() => {
    const now = { at: performance.now(), usedMs: usedMs() };
    const turnMs = Math.max(0, now.at - last.at - LOOK_EVERY_MS);
    most = {
      heldMs: Math.max(most.heldMs, Math.min(turnMs, now.usedMs - last.usedMs)),
      turnMs: Math.max(most.turnMs, turnMs),
      peakBytes: Math.max(most.peakBytes, Deno.memoryUsage().rss),
    };
    last = now;
  }, LOOK_EVERY_MS);
  return () => {
    const calls = storeCalls();
    const load = {
      ...most,
      usedMs: usedMs() - askedAt,
      bytes: Deno.memoryUsage().rss,
      reads: calls.reads - before.reads,
      flushes: calls.flushes - before.flushes,
    };
    before = calls;
    askedAt += load.usedMs;
    most = { heldMs: 0, turnMs: 0, peakBytes: 0 };
    return Promise.resolve(load);
  };
}

/** Processor time of the process so far. */
function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
