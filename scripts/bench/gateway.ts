/** The gateway as a process of a bench: the whole of it, as `paloma serve` runs it, on a data folder. Asked, it says its load. */
import { startGateway } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import type { SettingValues } from "../../src/settings.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { runAsChild } from "./child.ts";
import { countStoreCalls, watchLoad, watchUse } from "./watch_load.ts";

export interface GatewayReady {
  /** `http://HOST:PORT` */
  url: string;
}

/** What it used alone, or its whole load (null), which takes processor time to find out. */
export type GatewayQuestion = "use" | null;

if (import.meta.main) {
  const storeCalls = countStoreCalls();
  const answers = { use: watchUse(storeCalls), load: watchLoad(storeCalls) };
  await runAsChild<SettingValues, GatewayQuestion>(async (settings) => {
    const config = readConfig({ PALOMA_PORT: "0", PALOMA_LOG_LEVEL: "warn", ...settings });
    const gateway = await startGateway({ config, runtime: systemRuntime(makeLog(config.logLevel)) });
    const ready: GatewayReady = { url: new URL(gateway.baseUrl).origin };
    return { ready, answer: (question) => answers[question ?? "load"](), stop: () => gateway.stop() };
  });
}
