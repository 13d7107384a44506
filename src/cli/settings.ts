/** Settings as options of a command: the flag wins over the environment, the environment over the default. */
import type { Command } from "commander";
import { type Config, readConfig, SETTINGS, type SettingValues } from "../config.ts";

/** Adds every setting as an option, and `--json`. */
export function withSettings(command: Command): Command {
  for (const setting of SETTINGS) {
    command.option(`${setting.flag} ${setting.argument}`, `${setting.about} [${setting.env}]`);
  }
  return command;
}

/** The settings of a parsed command. Throws SettingsError. */
export function configOf(options: Record<string, unknown>): Config {
  const values: SettingValues = { PORT: Deno.env.get("PORT") };
  for (const { env, flag } of SETTINGS) {
    const name = flag.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
    const given = options[name];
    values[env] = typeof given === "string" ? given : Deno.env.get(env);
  }
  return readConfig(values);
}
