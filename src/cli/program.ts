/** The command line: which commands there are, and how their outcomes become exit codes (0 done, 1 failed, 2 usage). */
import { Command, CommanderError } from "commander";
import { SettingsError } from "../config.ts";
import { OperatorError, Problem } from "../errors.ts";
import { StoreError } from "../store/kv.ts";
import { VERSION } from "../version.ts";
import { addAccountCommand } from "./account.ts";
import { addBackupCommands } from "./backup.ts";
import { addDoctorCommand } from "./doctor.ts";
import { addHealthcheckCommand } from "./healthcheck.ts";
import { addLineCommand } from "./line.ts";
import { addLinkCommand } from "./link.ts";
import { addListenCommand } from "./listen.ts";
import { addOpenapiCommand } from "./openapi.ts";
import { Exit, print, printError, printResult } from "./output.ts";
import { addOperatorCommand } from "./operator.ts";
import { addPlanCommand } from "./plan.ts";
import { addRekeyCommand } from "./rekey.ts";
import { addSandboxCommand } from "./sandbox.ts";
import { addServeCommands } from "./serve.ts";
import { addSettings } from "./settings.ts";

/** Runs the command line; resolves to the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  const json = args.includes("--json");
  try {
    await program(args, json).parseAsync([...args], { from: "user" });
    return 0;
  } catch (error) {
    // The reader of the pipe has closed it.
    if (error instanceof Deno.errors.BrokenPipe) return 0;
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    const { exitCode, code, message } = failureOf(error);
    if (json) printError(JSON.stringify({ error: { code, message } }));
    // The parser has said what is wrong, and how to get help.
    else if (!(error instanceof CommanderError)) printError(message);
    return exitCode;
  }
}

interface Failure {
  exitCode: 1 | 2;
  /** For scripts; the same words as in the API where the failure is the same. */
  code: string;
  message: string;
}

function failureOf(error: unknown): Failure {
  if (error instanceof CommanderError) {
    return { exitCode: 2, code: "usage", message: error.message.replace(/^error: /, "") };
  }
  if (error instanceof Exit) {
    return { exitCode: error.code, code: error.code === 2 ? "usage" : "failed", message: error.message };
  }
  if (error instanceof Problem) {
    return { exitCode: error.code === "validation_failed" ? 2 : 1, code: error.code, message: error.message };
  }
  if (error instanceof OperatorError) {
    return { exitCode: error instanceof SettingsError ? 2 : 1, code: error.code, message: error.message };
  }
  if (error instanceof StoreError) {
    const message = `The data cannot be used (${error.code}): ${error.message}`;
    return { exitCode: 1, code: "storage_unavailable", message };
  }
  // A folder that is not there, not ours, or no folder; the message names it.
  const { NotADirectory, NotFound, PermissionDenied } = Deno.errors;
  if (error instanceof NotADirectory || error instanceof NotFound || error instanceof PermissionDenied) {
    return { exitCode: 1, code: "file_unusable", message: error.message };
  }
  // What the system refuses, such as a write to a read-only disk.
  if (error instanceof Error && "code" in error && /^E[A-Z]+$/.test(String(error.code))) {
    return { exitCode: 1, code: "file_unusable", message: error.message };
  }
  // Anything else is a bug.
  const message = error instanceof Error ? error.stack ?? error.message : String(error);
  return { exitCode: 1, code: "internal_error", message };
}

/** All commands with their options; `args` and `json` say how help and errors are shown. */
export function program(args: readonly string[], json: boolean): Command {
  const root = new Command("paloma")
    .description(
      "A self-hosted messaging gateway: link WhatsApp lines, send with plain HTTP, hear back by signed webhooks.",
    )
    .version(VERSION, "-V, --version", "print the version")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => print(text.trimEnd()),
      writeErr: (text) => printError(text.trimEnd()),
      outputError: (text, write) => json || write(text),
    });
  if (!json) root.showHelpAfterError("Run it with --help to see what it takes.");
  // An unknown command is a typo: suggest the nearest one.
  addServeCommands(root, { isDefault: args[0] === undefined || args[0].startsWith("-") });
  addLinkCommand(root);
  addLineCommand(root);
  addSandboxCommand(root);
  addAccountCommand(root);
  addPlanCommand(root);
  addOperatorCommand(root);
  addBackupCommands(root);
  addRekeyCommand(root);
  addListenCommand(root);
  addDoctorCommand(root);
  addOpenapiCommand(root);
  addHealthcheckCommand(root);
  addVersionCommand(root);
  addSettings(root, args);
  return root;
}

function addVersionCommand(root: Command): void {
  root.command("version").description("print the version").option("--json", "print JSON")
    .action((options) => {
      const names = ["env", "ffi", "net", "read", "run", "sys", "write"] as const;
      const permissions = names.filter((name) => Deno.permissions.querySync({ name }).state === "granted");
      printResult(options, { version: VERSION, deno: Deno.version.deno, permissions }, () => VERSION);
    });
}
