/** `paloma rekey`: re-encrypts everything under a new secret key. */
import type { Command } from "commander";
import { ROWS } from "../settings.ts";
import { assertData, silentRuntime } from "./data.ts";
import { Exit, printResult } from "./output.ts";
import { configOf, OF_DATA, withSettings } from "./settings.ts";

const NEW_KEY = "PALOMA_NEW_SECRET_KEY";

export function addRekeyCommand(root: Command): void {
  withSettings(
    root.command("rekey").description("re-encrypt all data under a new secret key, while no gateway runs"),
    OF_DATA,
  )
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `\nThe key in the data folder is replaced by a new one. If PALOMA_SECRET_KEY is set, the new key is read from ${NEW_KEY}.\n` +
        "Existing links to files stop working. If a run is interrupted, run it again.",
    )
    .action(async (options) => {
      const config = configOf(options);
      const to = newKey(config.secretKey);
      await assertData(config);
      const { dataFolder } = await import("../app.ts");
      const lock = config.store === null ? await dataFolder.lock(config.dataDir) : null;
      try {
        const rows = await dataFolder.rekey(config, to, silentRuntime);
        printResult(
          options,
          { rows },
          () => `${rows} rows were re-encrypted. ` + (to === null ? "The new key is in place." : CONFIGURED),
        );
      } finally {
        lock?.release();
      }
    });
}

const CONFIGURED = `From now on, set PALOMA_SECRET_KEY to the value of ${NEW_KEY}.`;

function newKey(configured: string | null): string | null {
  const given = Deno.env.get(NEW_KEY)?.trim() || null;
  if ((given === null) !== (configured === null)) {
    throw new Exit(2, `${NEW_KEY} goes with PALOMA_SECRET_KEY: set both, or neither if the key is in the data folder.`);
  }
  if (given === null) return null;
  return ROWS.PALOMA_SECRET_KEY.read(given, (why) => {
    throw new Exit(2, `${NEW_KEY}: ${why}`);
  });
}
