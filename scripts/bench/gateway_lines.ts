/** The gateway with linked lines, from its start until all of them are connected. */
import process from "node:process";
import { startGateway } from "../../src/app.ts";
import { within } from "../../src/base/within.ts";
import { GIVE_UP_AFTER_MS } from "../../src/cli/client.ts";
import { readConfig } from "../../src/config.ts";
import type { SettingValues } from "../../src/settings.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemClock, systemRuntime } from "../../src/runtime.ts";
import { restingMemory, runAsChild } from "./child.ts";
import type { GatewayReady } from "./gateway.ts";
import { rest } from "./idle.ts";
import type { Connected } from "./lines.ts";
import { countStoreCalls, watchLoad } from "./watch_load.ts";

export interface GatewayLines {
  settings: SettingValues;
  /** How many there are. */
  lines: number;
}

/** For so many ms it is asked what it does (`Idle`), else its load since it was last asked (`GatewayLoad`). */
export type GatewayQuestion = { restMs: number } | null;

if (import.meta.main) {
  const storeCalls = countStoreCalls();
  const load = watchLoad(storeCalls);
  await runAsChild<GatewayLines, GatewayQuestion>(async ({ settings, lines }) => {
    const config = readConfig({ PALOMA_PORT: "0", ...settings });
    const began = performance.now();
    const cpu = process.cpuUsage();
    const connected = Promise.withResolvers<void>();
    let left = lines;
    // The log is the cheapest source: polling the API would be measured too.
    const destination = {
      write(line: string) {
        if (line.includes('"status":"connected"') && --left === 0) connected.resolve();
      },
    };
    const gateway = await startGateway({ config, runtime: systemRuntime(makeLog("info", { destination })) });
    if (await within(systemClock, GIVE_UP_AFTER_MS, connected.promise) === "late") {
      throw new Error(`${left} of ${lines} lines did not connect`);
    }
    const { user, system } = process.cpuUsage(cpu);
    const tookMs = performance.now() - began;
    const ready: Connected & GatewayReady = {
      tookMs,
      cpuMs: (user + system) / 1000,
      bytes: await restingMemory(),
      url: new URL(gateway.baseUrl).origin,
    };
    return {
      ready,
      answer: (question) => question === null ? load() : rest(question.restMs, storeCalls),
      stop: () => gateway.stop(),
    };
  });
}
