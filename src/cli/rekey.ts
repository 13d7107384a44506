/** `paloma rekey`: re-encrypts everything under a new secret key. */
import type { Command } from "commander";
import { ROWS } from "../settings.ts";
import { assertData, silentRuntime } from "./data.ts";
import { Exit, printResult } from "./output.ts";
import { configOf, OF_DATA, withSettings } from "./settings.ts";

const NEW_KEY = "PALOMA_NEW_SECRET_KEY";

export function addRekeyCommand(root: Command): void {
  withSettings(
    root.command("rekey").description("re-encrypt everything under a new secret key, while no gateway runs"),
    OF_DATA,
  )
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `\nThe folder's own key is replaced by a new one. Where PALOMA_SECRET_KEY is set, the new key is read from ${NEW_KEY}.\n` +
        "Links to files that were made before are good for nothing afterwards. A run that was cut short is run again.",
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
          () => `${rows} rows were sealed anew. ` + (to === null ? "The new key is in place." : CONFIGURED),
        );
      } finally {
        lock?.release();
      }
    });
}

const CONFIGURED = `From now on PALOMA_SECRET_KEY has to be what ${NEW_KEY} is.`;

function newKey(configured: string | null): string | null {
  const given = Deno.env.get(NEW_KEY)?.trim() || null;
  if ((given === null) !== (configured === null)) {
    throw new Exit(2, `${NEW_KEY} goes with PALOMA_SECRET_KEY: set both, or neither for a key in the data folder.`);
  }
  if (given === null) return null;
  return ROWS.PALOMA_SECRET_KEY.read(given, (why) => {
    throw new Exit(2, `${NEW_KEY}: ${why}`);
  });
}
