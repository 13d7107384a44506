/** Settings as options of a command: the flag wins over the environment, the environment over the default. */
import type { Command } from "commander";
import { type Config, readConfig } from "../config.ts";
import { reachable } from "../http/listen/serve.ts";
import { Exit } from "./output.ts";
import { FOREIGN, type SettingName, SETTINGS, type SettingValues } from "../settings.ts";

const HEADING = "Settings (also from the environment, under the name in brackets):";

/** What a command beside the gateway needs to find and open the data. */
export const OF_DATA = ["PALOMA_DATA_DIR", "PALOMA_STORE", "PALOMA_SECRET_KEY"] as const;
/** What one needs that copies files too. */
export const OF_DATA_AND_FILES = [...OF_DATA, "PALOMA_MEDIA"] as const;
/** What a command needs to find the gateway on its machine. */
export const OF_PORT = ["PALOMA_HOST", "PALOMA_PORT"] as const;

/** Settings that the command's help shows. */
const taking = new WeakMap<Command, ReadonlySet<SettingName>>();

/** The command takes every setting as an option; its help shows those that matter to it, all unless given. */
export function withSettings(
  command: Command,
  shown: readonly SettingName[] = SETTINGS.map(({ env }) => env),
): Command {
  taking.set(command, new Set(shown));
  if (shown.length < SETTINGS.length) {
    command.addHelpText("after", "\nAll other settings are taken too: paloma serve --help");
  }
  return command;
}

/**
 * Adds the settings to the commands that take them, behind the options of their own. `args` are the command's: where they
 * name one below, the others are not asked for theirs, which would be a thousand options at each start.
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

/** The settings of a parsed command. Throws SettingsError. */
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

/** Whether the setting was made, by flag or environment; what is empty is none. */
export function isSet(options: object, name: SettingName): boolean {
  const { flag } = SETTINGS.find(({ env }) => env === name)!;
  return Boolean((flaggedIn(options, flag) ?? Deno.env.get(name))?.trim());
}

function flaggedIn(options: object, flag: string): string | undefined {
  const name = flag.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  const flagged = Reflect.get(options, name);
  return typeof flagged === "string" ? flagged : undefined;
}

/** `http://HOST:PORT` of the gateway with these settings, as a program on the same machine reaches it. */
export function localUrl({ host, port }: Config): string {
  return `http://${reachable(host)}:${port}`;
}

/**
 * Base address of the API: the one given, without slashes at its end, else that of the gateway on this machine. Throws Exit.
 */
export function apiUrl(given: string | undefined, settings: Record<string, unknown>): string {
  if (given === undefined) return `${localUrl(configOf(settings))}/v1`;
  assertHttp("--url", given);
  return given.replace(/(?<!\/)\/+$/, "");
}

/** Throws Exit where the flag was given something else than an address to call. */
export function assertHttp(flag: string, url: string): void {
  if (/^https?:/i.test(url) && URL.canParse(url)) return;
  throw new Exit(2, `${flag}: "${url}" is not a URL with http: or https:`);
}
