/** `paloma backup` and `paloma restore`: everything of a data folder in one file. */
import type { Command } from "commander";
import type { BackupSummary } from "../data/backup.ts";
import { printResult } from "./output.ts";
import { configOf, withSettings } from "./settings.ts";

/** The key stays out of the file, so that a stolen backup opens no credential. */
const KEEP_THE_KEY =
  "The secret key is not in it: keep secret.key of the data folder (or PALOMA_SECRET_KEY) in another safe place.";

export function addBackupCommands(root: Command): void {
  withSettings(root.command("backup <file>").description("copy everything into one file, also while the gateway runs"))
    .option("--json", "print JSON")
    .action(async (file: string, options) => {
      const { dataFolder } = await import("../app.ts");
      const summary = await dataFolder.backup(configOf(options).dataDir, file);
      printResult(options, { file, ...summary }, () => `${file}: ${describe(summary)}.\n${KEEP_THE_KEY}`);
    });

  withSettings(
    root.command("restore <file>").description("bring a backup into an empty data folder, while no gateway runs"),
  )
    .option("--json", "print JSON")
    .action(async (file: string, options) => {
      const { dataFolder } = await import("../app.ts");
      const summary = await dataFolder.restore(file, configOf(options).dataDir);
      printResult(options, { file, ...summary }, () => `Restored ${describe(summary)}. It needs the same secret key.`);
    });
}

function describe({ rows, files, bytes }: BackupSummary): string {
  return `${rows} rows, ${files} files (${(bytes / 1e6).toFixed(1)} MB)`;
}
