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
      const { baseUrl, panelUrl } = gateway;
      const operatorLink = await gateway.firstRunLink();
      const accounts = await gateway.accounts.list();
      printResult(
        options,
        { baseUrl, panelUrl, ...(operatorLink && { operatorLink }) },
        () => welcome({ baseUrl, panelUrl, operatorLink, accounts: accounts.map(({ name }) => name) }),
      );
      await asked;
      await gateway.stop();
    });
}

interface Running {
  baseUrl: string;
  panelUrl: string;
  /** Null: the panel has its operator. */
  operatorLink: string | null;
  /** Names. */
  accounts: readonly string[];
}

function welcome({ baseUrl, panelUrl, operatorLink, accounts }: Running): string {
  const lines = [
    `Paloma listens on ${baseUrl}`,
    `  panel      ${panelUrl}`,
    `  reference  ${baseUrl.replace(/\/v1$/, "/docs")}`,
  ];
  if (operatorLink !== null) {
    lines.push(
      "",
      "The panel has no operator yet. Open this within an hour, once, to make the login:",
      `  ${operatorLink}`,
    );
  }
  if (accounts.length === 0) {
    lines.push("", "New here? In another terminal: paloma account create --name NAME, then paloma link NAME");
  } else if (operatorLink !== null) {
    lines.push("", `Accounts here: ${accounts.join(", ")}`);
  }
  return lines.join("\n");
}
