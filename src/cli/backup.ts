/** `paloma backup`, `restore` and `rekey`: all data of a gateway, copied to a file, restored from it, or re-encrypted. */
import { basename, dirname, join } from "node:path";
import type { Command } from "commander";
import { assertNew, type BackupSummary, noteBackup } from "../data/backup.ts";
import { lockGateway } from "../data/data_folder.ts";
import { backupName, BACKUPS_KEPT, backupTime } from "../data/kept_backups.ts";
import { isSealedFile } from "../data/sealed_file.ts";
import { systemClock, systemRandom } from "../runtime.ts";
import { ROWS } from "../settings.ts";
import { assertData, silentRuntime, withStore } from "./data.ts";
import { Exit, printError, printResult } from "./output.ts";
import {
  configOf,
  neededPassphrase,
  OF_DATA,
  OF_DATA_AND_FILES,
  passphraseOf,
  withPassphrase,
  withSettings,
} from "./settings.ts";
import { exitWhenAsked } from "./signals.ts";

/** The key stays out of the file, so that a stolen backup opens no credential. */
const KEEP_THE_KEY =
  "The secret key is not included: keep secret.key of the data folder (or PALOMA_SECRET_KEY) in another safe place.";
/** Names of temporary files that a killed backup leaves; one of an older version possibly unsealed. */
const UNFINISHED = /^(paloma-[\dTZ-]+\.backup)(\.open|\.part|\.open\.part|\.part\.open)$/;
/** Variable with the new secret key of `rekey`. */
const NEW_KEY = "PALOMA_NEW_SECRET_KEY";
/** Longer than any backup takes. */
const GIVEN_UP_MS = 24 * 60 * 60 * 1000;

interface BackupOptions extends Record<string, unknown> {
  into?: string;
  keep?: string;
  passphraseFile?: string;
  json?: boolean;
}

export function addBackupCommands(root: Command): void {
  withPassphrase(
    withSettings(
      root.command("backup").description("copy all data into one new file, even while a gateway runs"),
      OF_DATA_AND_FILES,
    ),
  )
    .argument("[file]", "a file that does not exist yet, in a folder that does")
    .option("--into <folder>", "instead of a file: name it by the time, in this folder, and keep only the newest")
    .option("--keep <n>", "with --into: how many to keep (default: 7)")
    .option("--json", "print JSON")
    .action(async (given: string | undefined, options: BackupOptions) => {
      const file = target(given, options);
      const passphrase = await passphraseOf(options);
      const config = configOf(options);
      await assertNew(file);
      await assertData(config);
      const [{ copyOptions }, { backupData }] = await loading();
      void exitWhenAsked();
      const seal = passphrase === null ? null : { passphrase, random: systemRandom };
      const summary = await backupData(config, file, { ...await copyOptions(config, silentRuntime), seal });
      // The copy is complete, whatever becomes of this: a store may be on a disk that takes nothing.
      await withStore(config, (store) => noteBackup(store, systemClock)).catch(({ message }: Error) =>
        printError(`When this backup was made could not be noted: ${message}`)
      );
      const removed = options.into === undefined ? [] : await rotate(file, Number(options.keep ?? BACKUPS_KEPT));
      printResult(
        options,
        { file, ...summary, sealed: passphrase !== null, removed },
        () => `${file}: ${describe(summary)}.\n${KEEP_THE_KEY}`,
      );
    });

  withPassphrase(
    withSettings(
      root.command("restore <file>").description("restore a backup into an empty data folder, while no gateway runs"),
      OF_DATA_AND_FILES,
    ),
  )
    .option("--json", "print JSON")
    .action(async (file: string, options: BackupOptions) => {
      const config = configOf(options);
      const [{ copyOptions }, { restoreData }] = await loading();
      void exitWhenAsked();
      const copy = await copyOptions(config, silentRuntime);
      const isSealed = await isSealedFile(file).catch(() => false);
      const seal = isSealed ? { passphrase: await neededPassphrase(options), random: systemRandom } : null;
      const summary = await restoreData(file, config, { ...copy, seal });
      printResult(
        options,
        { file, ...summary },
        () => `Restored ${describe(summary)}. The gateway needs the same secret key as before.`,
      );
    });

  addRekeyCommand(root);
}

const loading = () => Promise.all([import("../engines.ts"), import("../data/shared_backup.ts")]);

function target(file: string | undefined, { into, keep }: BackupOptions): string {
  if ((file === undefined) === (into === undefined)) throw new Exit(2, "Give either a file or --into with a folder.");
  if (keep !== undefined && into === undefined) throw new Exit(2, "--keep needs --into.");
  if (keep !== undefined && !/^[1-9]\d{0,3}$/.test(keep)) throw new Exit(2, `--keep: "${keep}" is not a number from 1`);
  if (file !== undefined) return file;
  return join(into!, backupName(systemClock.now()));
}

/**
 * Removes all but the newest `keep` backups in the folder of the backup `made`, and what killed backups left; resolves
 * to the names removed. `made` always stays, even if the clock was set back and its name is not the newest.
 */
async function rotate(made: string, keep: number): Promise<string[]> {
  const folder = dirname(made);
  const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).sort();
  const givenUp = backupName(systemClock.now() - GIVEN_UP_MS);
  const others = names.filter((name) => backupTime(name) !== null && name !== basename(made));
  const old = [
    ...others.slice(0, Math.max(0, others.length - (keep - 1))),
    ...names.filter((name) => (UNFINISHED.exec(name)?.[1] ?? "~") < givenUp),
  ];
  for (const name of old) await Deno.remove(join(folder, name));
  return old;
}

function describe({ rows, files, bytes }: BackupSummary): string {
  return `${rows} rows, ${files} ${files === 1 ? "file" : "files"} (${(bytes / 1e6).toFixed(1)} MB)`;
}

/** Adds `paloma rekey`: re-encrypts everything under a new secret key. */
function addRekeyCommand(root: Command): void {
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
      const [{ fileEngine, openOptions }, { rekeyDataFolder }] = await Promise.all([
        import("../engines.ts"),
        import("../data/rekey.ts"),
      ]);
      const lock = config.store === null ? await lockGateway(config.dataDir, fileEngine) : null;
      try {
        const rows = await rekeyDataFolder(config, { ...openOptions(config, silentRuntime), to });
        printResult(
          options,
          { rows },
          () => `Rows re-encrypted: ${rows}. ` + (to === null ? "The new key is in place." : CONFIGURED),
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
