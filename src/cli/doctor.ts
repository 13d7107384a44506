/** `paloma doctor`: looks for what keeps a gateway from working, and says what to do about it. */
import type { Command } from "commander";
import { examine } from "./doctor_checks.ts";
import { Exit, print, printResult, table } from "./output.ts";
import { configOf, withSettings } from "./settings.ts";

export function addDoctorCommand(root: Command): void {
  withSettings(root.command("doctor").description("look for what keeps the gateway from working"))
    .option("--json", "print JSON")
    .action(async (options) => {
      const findings = await examine(configOf(options));
      printResult(options, findings, () =>
        table(findings.flatMap(({ ok, check, detail, hint }) => [
          [ok ? "✓" : "✗", check, detail],
          ...(hint === null ? [] : [["", "", `→ ${hint}`]]),
        ])));
      const bad = findings.filter(({ ok }) => !ok).length;
      if (bad > 0) throw new Exit(1, `${bad} of ${findings.length} checks failed.`);
      if (!options.json) print("All is well.");
    });
}
