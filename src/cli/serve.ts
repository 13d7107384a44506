/** `paloma serve`: the gateway, until SIGINT or SIGTERM. */
import type { Command } from "commander";
import { startGateway } from "../app.ts";
import { makeLog, quietConsole } from "../ops/log.ts";
import { systemRuntime } from "../runtime.ts";
import { printResult } from "./output.ts";
import { configOf, withSettings } from "./settings.ts";
import { untilAsked } from "./signals.ts";

export function addServeCommand(root: Command): void {
  withSettings(root.command("serve", { isDefault: true }).description("the gateway (also with no command)"))
    .option("--json", "print one line of JSON when it listens")
    .action(async (options) => {
      const config = configOf(options);
      const runtime = systemRuntime(makeLog(config.logLevel));
      quietConsole(runtime.log);
      // From now on, so that a signal during the start ends it in order too.
      const asked = untilAsked();
      const gateway = await startGateway({ config, runtime });
      printResult(
        options,
        { baseUrl: gateway.baseUrl, panelUrl: gateway.panelUrl },
        () => `Paloma listens on ${gateway.baseUrl}   reference: ${gateway.baseUrl.replace(/\/v1$/, "/docs")}`,
      );
      await asked;
      await gateway.stop();
    });
}
