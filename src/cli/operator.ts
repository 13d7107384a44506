/** `paloma operator`: access to the panel for the gateway's operator. */
import type { Command } from "commander";
import { linkUrl, makeLinks } from "../panel/logins/links.ts";
import { withData } from "./data.ts";
import { note } from "./note.ts";
import { printResult } from "./output.ts";
import { configOf, localUrl, OF_DATA, OF_PORT, withSettings } from "./settings.ts";

export function addOperatorCommand(root: Command): void {
  const operator = root.command("operator").description("give operators access to the panel");
  withSettings(operator.command("link").description("print a one-time link for creating an operator's login"), [
    "PALOMA_PUBLIC_URL",
    ...OF_PORT,
    ...OF_DATA,
  ])
    .option("--json", "print JSON")
    .action((options) =>
      withData(options, async ({ kv, runtime }) => {
        const config = configOf(options);
        const { token, expiresAt } = await makeLinks({ kv, runtime }).make({ kind: "operator" });
        await note({ kv, runtime }, "operator_invited", null);
        const url = linkUrl(`${config.publicUrl ?? localUrl(config)}/panel`, { kind: "operator" }, token);
        const until = new Date(expiresAt).toISOString();
        printResult(options, { url, expiresAt: until }, () => `${url}\nIt works once, until ${until}.`);
      })
    );
}
