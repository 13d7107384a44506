/**
 * Commands that the panel runs for operators, each in a process of its own: a backup keeps its thread busy, and what the
 * panel says is what the command line says.
 */
import { itself } from "../base/itself.ts";
import { unlessMalformed } from "../base/retry.ts";

/** Runs a command; resolves to the JSON that it prints. Throws Error with the command's own message. */
export type RunCommand = (args: readonly string[]) => Promise<unknown>;

/** `settings` returns those of the gateway, by the names of their variables. */
export function commandsWith(settings: () => Record<string, string>): RunCommand {
  return async (args) => {
    const command = itself([...args, "--json"], {
      permissions: ["--allow-all"],
      env: settings(),
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    });
    const { stdout, stderr } = await command.output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
    // Also the doctor's, which fails if a check does.
    const printed = text(stdout);
    if (printed !== "") return JSON.parse(printed);
    throw new Error(messageIn(text(stderr)));
  };
}

/** Returns the message of a failed command: the last line of what it wrote, as JSON. */
function messageIn(written: string): string {
  const last = written.split("\n").at(-1) ?? "";
  return unlessMalformed(() => JSON.parse(last).error.message, last);
}
