/** `paloma sandbox`: the whole product on a simulated network, without a phone. */
import type { Command } from "commander";
import { withSettings } from "./settings.ts";

export function addSandboxCommand(root: Command): void {
  withSettings(root.command("sandbox").description("a simulated network, the gateway on it, an account, a linked line"))
    .option("--demo", "send and receive on it, print what happened, and exit")
    .option("--network-only", "the simulated network alone, for a gateway of your own")
    .option("--json", "print one line of JSON when all is ready")
    .action(async (options) => {
      const { runNetwork, runSandbox } = await import("./run_sandbox.ts");
      await (options.networkOnly ? runNetwork : runSandbox)(options);
    });
}
