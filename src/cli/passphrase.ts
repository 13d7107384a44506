/** Passphrases, from a file or the environment: on the command line, every user of the machine could read them. */
import type { Command } from "commander";
import { Exit } from "./output.ts";

const SHORTEST = 12;

export function withPassphrase(command: Command): Command {
  return command.option(
    "--passphrase-file <file>",
    "file with the passphrase that encrypts the export or backup (default: PALOMA_PASSPHRASE)",
  );
}

/** Resolves to the passphrase; null if none was given. Throws Exit 2 if it is too short. */
export async function passphraseOf(options: { passphraseFile?: string }): Promise<string | null> {
  const passphrase = options.passphraseFile === undefined
    ? Deno.env.get("PALOMA_PASSPHRASE") ?? null
    : (await Deno.readTextFile(options.passphraseFile)).replace(/\r?\n$/, "");
  if (passphrase === null || passphrase.length >= SHORTEST) return passphrase;
  throw new Exit(2, `A passphrase needs at least ${SHORTEST} characters.`);
}

/** As `passphraseOf`, but throws Exit 2 if none was given. */
export async function neededPassphrase(options: { passphraseFile?: string }): Promise<string> {
  const passphrase = await passphraseOf(options);
  if (passphrase !== null) return passphrase;
  throw new Exit(2, "A passphrase is needed: --passphrase-file, or PALOMA_PASSPHRASE in the environment.");
}
