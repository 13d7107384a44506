/** `paloma serve`: the gateway, until SIGINT or SIGTERM. */
import type { Command } from "commander";
import { systemRuntime } from "../runtime.ts";
import { printResult } from "./output.ts";
import { configOf, withSettings } from "./settings.ts";
import { untilAsked } from "./signals.ts";

export function addServeCommand(root: Command, { isDefault }: { isDefault: boolean }): void {
  withSettings(root.command("serve", { isDefault }).description("the gateway (also with no command)"))
    .option("--json", "print one line of JSON when it listens")
    .action(async (options) => {
      const config = configOf(options);
      const [{ startGateway }, { makeLog, quietConsole }] = await Promise.all([
        import("../app.ts"),
        import("../ops/log.ts"),
      ]);
      const runtime = systemRuntime(makeLog(config.logLevel));
      quietConsole(runtime.log);
      // From now on, so that a signal during the start ends it in order too.
      const asked = untilAsked();
      const gateway = await startGateway({ config, runtime });
      printResult(
        options,
        { baseUrl: gateway.baseUrl, panelUrl: gateway.panelUrl },
        () => welcome(gateway),
      );
      await asked;
      await gateway.stop();
    });
}

function welcome({ baseUrl, panelUrl }: { baseUrl: string; panelUrl: string }): string {
  return [
    `Paloma listens on ${baseUrl}`,
    `  panel      ${panelUrl}`,
    `  reference  ${baseUrl.replace(/\/v1$/, "/docs")}`,
    "",
    "New here? In another terminal: paloma account create --name NAME, then paloma link NAME",
  ].join("\n");
}
