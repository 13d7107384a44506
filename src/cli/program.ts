/** The command line: which commands there are, and how their outcomes become exit codes (0 done, 1 failed, 2 usage). */
import { Command, CommanderError } from "commander";
import { SettingsError } from "../config.ts";
import { Problem } from "../errors.ts";
import { AlreadyRunning } from "../data/gateway_lock.ts";
import { CannotListen } from "../http/listen/listen.ts";
import { SecretKeyError } from "../data/secret_key.ts";
import { BackupError } from "../data/backup.ts";
import { StoreError } from "../store/kv.ts";
import { SchemaTooNew } from "../data/migrate.ts";
import { SealError } from "../store/seal.ts";
import { VERSION } from "../version.ts";
import { addAccountCommand } from "./account.ts";
import { addBackupCommands } from "./backup.ts";
import { addDoctorCommand } from "./doctor.ts";
import { addHealthcheckCommand } from "./healthcheck.ts";
import { addListenCommand } from "./listen.ts";
import { addOpenapiCommand } from "./openapi.ts";
import { Exit, print, printError, printResult } from "./output.ts";
import { addPlanCommand } from "./plan.ts";
import { addSandboxCommand } from "./sandbox.ts";
import { addServeCommand } from "./serve.ts";

/** What an operator can mend: told in a sentence. Anything else is a fault of ours, and told with its stack. */
const EXPECTED = [
  AlreadyRunning,
  BackupError,
  CannotListen,
  SchemaTooNew,
  SecretKeyError,
  SealError,
  // A folder that is not there, not ours, or no folder; the message names it.
  Deno.errors.NotADirectory,
  Deno.errors.NotFound,
  Deno.errors.PermissionDenied,
];

/** Runs the command line; resolves to the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  try {
    await program().parseAsync([...args], { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof Exit) {
      printError(error.message);
      return error.code;
    }
    if (error instanceof Problem) {
      printError(error.message);
      return error.code === "validation_failed" ? 2 : 1;
    }
    if (error instanceof SettingsError) {
      printError(error.message);
      return 2;
    }
    if (error instanceof StoreError) {
      printError(`The data folder cannot be used (${error.code}): ${error.message}`);
      return 1;
    }
    if (EXPECTED.some((kind) => error instanceof kind)) printError((error as Error).message);
    else printError(error instanceof Error ? error.stack ?? error.message : String(error));
    return 1;
  }
}

function program(): Command {
  const root = new Command("paloma")
    .description(
      "A self-hosted messaging gateway: link WhatsApp lines, send with plain HTTP, hear back by signed webhooks.",
    )
    .version(VERSION, "-V, --version", "print the version")
    .showHelpAfterError("Run it with --help to see what it takes.")
    .exitOverride()
    .configureOutput({ writeOut: (text) => print(text.trimEnd()), writeErr: (text) => printError(text.trimEnd()) });
  addServeCommand(root);
  addSandboxCommand(root);
  addAccountCommand(root);
  addPlanCommand(root);
  addBackupCommands(root);
  addListenCommand(root);
  addDoctorCommand(root);
  addOpenapiCommand(root);
  addHealthcheckCommand(root);
  root.command("version").description("print the version").option("--json", "print JSON")
    .action((options) => printResult(options, { version: VERSION, deno: Deno.version.deno }, () => VERSION));
  return root;
}
