/** One process of many on a shared store, in a role, as a process of a bench; its network real or one that does nothing. */
import { startGateway } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import type { RoleName } from "../../src/roles/role.ts";
import type { SettingValues } from "../../src/settings.ts";
import { makeLog } from "../../src/ops/log.ts";
import { systemClock, systemRuntime } from "../../src/runtime.ts";
import { FakeNetwork } from "../../tests/support/fake_network.ts";
import { runAsChild } from "./child.ts";
import type { GatewayReady } from "./gateway.ts";

export interface Machine {
  role: RoleName;
  settings: SettingValues;
  /** A network whose lines are linked, connect, and stay silent. */
  isNetworkFake?: boolean;
}

class AllLinked extends Set<string> {
  override has(): boolean {
    return true;
  }
}

if (import.meta.main) {
  await runAsChild<Machine>(async ({ role, settings, isNetworkFake = false }) => {
    const config = readConfig({ PALOMA_PORT: "0", PALOMA_LOG_LEVEL: "warn", ...settings });
    const openNetwork = () => Object.assign(new FakeNetwork(systemClock), { linked: new AllLinked() });
    const gateway = await startGateway({
      config,
      role,
      runtime: systemRuntime(makeLog(config.logLevel)),
      ...(isNetworkFake ? { openNetwork } : {}),
    });
    const ready: GatewayReady = { url: new URL(gateway.baseUrl).origin };
    return { ready, stop: () => gateway.stop() };
  });
}
