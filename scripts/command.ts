/** The command line of a script: what it takes, `--help`, and exit 2 for wrong usage. */
import { Command, InvalidArgumentError } from "commander";

/** `about`: what `--help` says first. */
export function scriptCommand(name: string, about: string): Command {
  return new Command(name).description(about).exitOverride(({ exitCode }) => Deno.exit(exitCode === 0 ? 0 : 2));
}

/** Parses the command line of this process. */
export function parsed<Options extends object>(command: Command): { options: Options; args: string[] } {
  command.parse(Deno.args, { from: "user" });
  return { options: command.opts<Options>(), args: command.args };
}

/** For options that take a number. */
export function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}
