/** Settings as options of a command: the flag wins over the environment, the environment over the default. */
import type { Command } from "commander";
import { type Config, readConfig, SETTINGS, type SettingValues } from "../config.ts";
import { Exit } from "./output.ts";

/** Adds every setting as an option, and `--json`. */
export function withSettings(command: Command): Command {
  for (const setting of SETTINGS) {
    command.option(`${setting.flag} ${setting.argument}`, `${setting.about} [${setting.env}]`);
  }
  return command;
}

/** The settings of a parsed command. Throws Exit 2 that names every problem. */
export function configOf(options: Record<string, unknown>): Config {
  const values: SettingValues = { PORT: Deno.env.get("PORT") };
  for (const { env, flag } of SETTINGS) {
    const name = flag.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
    const given = options[name];
    values[env] = typeof given === "string" ? given : Deno.env.get(env);
  }
  const { config, problems } = readConfig(values);
  if (problems.length > 0) {
    throw new Exit(
      2,
      ["The settings cannot be used:", ...problems.map((p) => `  ${p}`)].join("\n"),
    );
  }
  return config;
}
