/** Paloma's entry: parses the command line and runs the command. */
import { INSPECT } from "./src/inspect/inspector.ts";

if (import.meta.main) {
  // The process that reads one file loads nothing else.
  if (Deno.args[0] === INSPECT) await (await import("./src/inspect/child.ts")).inspectFile(Deno.args[1] ?? "");
  else Deno.exit(await (await import("./src/cli/program.ts")).run(Deno.args));
}
