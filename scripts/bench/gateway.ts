/** The gateway as a process of a bench: the whole of it, as `paloma serve` runs it, on a data folder. */
import { startGateway } from "../../src/app.ts";
import { readConfig, type SettingValues } from "../../src/config.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { runAsChild } from "./child.ts";

export interface GatewayReady {
  /** `http://HOST:PORT` */
  url: string;
}

if (import.meta.main) {
  await runAsChild<SettingValues>(async (settings) => {
    const config = readConfig({ PALOMA_PORT: "0", PALOMA_LOG_LEVEL: "warn", ...settings });
    const gateway = await startGateway({ config, runtime: systemRuntime(makeLog(config.logLevel)) });
    const ready: GatewayReady = { url: new URL(gateway.baseUrl).origin };
    return { ready, stop: () => gateway.stop() };
  });
}
