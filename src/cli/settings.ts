/**
 * Options that commands share: settings, of which a flag overrides the environment, which overrides the default; and
 * passphrases.
 */
import type { Command } from "commander";
import { type Config, readConfig } from "../config.ts";
import { reachable } from "../http/listen/serve.ts";
import { Exit } from "./output.ts";
import { FOREIGN, type SettingName, SETTINGS, type SettingValues } from "../settings.ts";

const HEADING = "Settings (or environment variables, in brackets):";

/** Settings with which a command finds and opens the data. */
export const OF_DATA = ["PALOMA_DATA_DIR", "PALOMA_STORE", "PALOMA_SECRET_KEY"] as const;
/** Settings of a command that also copies files. */
export const OF_DATA_AND_FILES = [...OF_DATA, "PALOMA_MEDIA"] as const;
/** Settings with which a command finds the gateway on its machine. */
export const OF_PORT = ["PALOMA_HOST", "PALOMA_PORT"] as const;

/** The settings shown in each command's help. */
const taking = new WeakMap<Command, ReadonlySet<SettingName>>();

/** Makes the command accept every setting as an option; its help lists only those in `shown`, by default all. */
export function withSettings(
  command: Command,
  shown: readonly SettingName[] = SETTINGS.map(({ env }) => env),
): Command {
  taking.set(command, new Set(shown));
  if (shown.length < SETTINGS.length) {
    command.addHelpText("after", "\nIt accepts all other settings, too: paloma serve --help");
  }
  return command;
}

/**
 * Adds the settings to the commands that take them, after their own options. If `args` name a subcommand, only that one
 * gets them: for all it would be a thousand options at each start.
 */
export function addSettings(command: Command, args: readonly string[]): void {
  const named = command.commands.filter((below) => below.name() === args[0]);
  for (const below of named.length > 0 ? named : command.commands) addSettings(below, args.slice(1));
  const shown = taking.get(command);
  if (!shown) return;
  for (const { env, flag, argument, about } of SETTINGS) {
    const option = command.createOption(`${flag} ${argument}`, `${about} [${env}]`).helpGroup(HEADING);
    command.addOption(option.hideHelp(!shown.has(env)));
  }
}

/** Returns the configuration from a parsed command's options and the environment. Throws SettingsError. */
export function configOf(options: object): Config {
  const flags = new Map<string, string>();
  const values: SettingValues = Object.fromEntries(FOREIGN.map((name) => [name, Deno.env.get(name)]));
  for (const { env, flag } of SETTINGS) {
    const flagged = flaggedIn(options, flag);
    values[env] = flagged ?? Deno.env.get(env);
    if (flagged !== undefined) flags.set(env, flag);
  }
  return readConfig(values, (name) => flags.get(name) ?? name);
}

/** Whether the setting was given by flag or environment and is not empty. */
export function isSet(options: object, name: SettingName): boolean {
  const { flag } = SETTINGS.find(({ env }) => env === name)!;
  return Boolean((flaggedIn(options, flag) ?? Deno.env.get(name))?.trim());
}

function flaggedIn(options: object, flag: string): string | undefined {
  const name = flag.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  const flagged = Reflect.get(options, name);
  return typeof flagged === "string" ? flagged : undefined;
}

/** Returns `http://HOST:PORT`, at which programs on the same machine reach the gateway with these settings. */
export function localUrl({ host, port }: Config): string {
  return `http://${reachable(host)}:${port}`;
}

/**
 * Returns the API's base address: `given`, without trailing slashes, or else that of the gateway on this machine.
 * Throws Exit.
 */
export function apiUrl(given: string | undefined, settings: Record<string, unknown>): string {
  if (given === undefined) return `${localUrl(configOf(settings))}/v1`;
  assertHttp("--url", given);
  return given.replace(/(?<!\/)\/+$/, "");
}

/** Throws Exit unless the flag's value is an http or https URL. */
export function assertHttp(flag: string, url: string): void {
  if (/^https?:/i.test(url) && URL.canParse(url)) return;
  throw new Exit(2, `${flag}: "${url}" is not a URL with http: or https:`);
}

/** In characters. */
const SHORTEST_PASSPHRASE = 12;

/** Adds a passphrase, which comes from a file or the environment: every user of the machine can read a command line. */
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
  if (passphrase === null || passphrase.length >= SHORTEST_PASSPHRASE) return passphrase;
  throw new Exit(2, `A passphrase needs at least ${SHORTEST_PASSPHRASE} characters.`);
}

/** As `passphraseOf`, but throws Exit 2 if none was given. */
export async function neededPassphrase(options: { passphraseFile?: string }): Promise<string> {
  const passphrase = await passphraseOf(options);
  if (passphrase !== null) return passphrase;
  throw new Exit(2, "A passphrase is needed: --passphrase-file, or PALOMA_PASSPHRASE in the environment.");
}
