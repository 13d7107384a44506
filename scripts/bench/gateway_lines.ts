/** The gateway with linked lines, from its start until all of them are connected. */
import process from "node:process";
import { startGateway } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import type { SettingValues } from "../../src/settings.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { restingMemory, runAsChild } from "./child.ts";
import { rest } from "./idle.ts";
import type { Connected } from "./lines.ts";

if (import.meta.main) {
  await runAsChild<{ settings: SettingValues; lines: number }, number>(async ({ settings, lines }) => {
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
    await connected.promise;
    const { user, system } = process.cpuUsage(cpu);
    const tookMs = performance.now() - began;
    const ready: Connected = { tookMs, cpuMs: (user + system) / 1000, bytes: await restingMemory() };
    return { ready, answer: rest, stop: () => gateway.stop() };
  });
}
