/** Runs a command and turns its outcome into an exit code: 0 done, 1 failed, 2 wrong usage. */
import { errorCode } from "../base/retry.ts";
import { SettingsError } from "../config.ts";
import { OperatorError, Problem } from "../errors.ts";
import type { RoleName } from "../roles/role.ts";
import { StoreError } from "../store/kv.ts";
import { Exit, Misuse, printError } from "./output.ts";

const ROLES: readonly RoleName[] = ["serve", "api", "worker"];

/** Runs the command line; resolves to the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  const json = args.includes("--json");
  try {
    const [name = "serve", ...options] = args;
    const role = ROLES.find((role) => role === name);
    // Services and containers start it like this, with all settings in the environment: nothing to parse.
    if (role && options.length === 0) await (await import("./serve.ts")).serve(role);
    else await (await import("./program.ts")).parse(args, json);
    return 0;
  } catch (error) {
    // The reader has closed the pipe.
    if (error instanceof Deno.errors.BrokenPipe) return 0;
    const { exitCode, code, message } = failureOf(error);
    if (json) printError(JSON.stringify({ error: { code, message } }));
    // For a Misuse, the parser has already printed what is wrong and how to get help.
    else if (!(error instanceof Misuse)) printError(message);
    return exitCode;
  }
}

interface Failure {
  exitCode: 1 | 2;
  /** For scripts; the API's code if the API has the same failure. */
  code: string;
  message: string;
}

function failureOf(error: unknown): Failure {
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
  // A folder that is missing, inaccessible or not a folder; the message names it.
  const { NotADirectory, NotFound, PermissionDenied } = Deno.errors;
  if (error instanceof NotADirectory || error instanceof NotFound || error instanceof PermissionDenied) {
    return { exitCode: 1, code: "file_unusable", message: error.message };
  }
  // An operation that the system refuses, such as a write to a read-only disk.
  if (error instanceof Error && /^E[A-Z]+$/.test(String(errorCode(error)))) {
    return { exitCode: 1, code: "file_unusable", message: error.message };
  }
  // Anything else is a bug.
  const message = error instanceof Error ? error.stack ?? error.message : String(error);
  return { exitCode: 1, code: "internal_error", message };
}
