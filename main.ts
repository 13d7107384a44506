/** Paloma's entry: parses the command line and runs the command. */
import { run } from "./src/cli/program.ts";

if (import.meta.main) {
  Deno.exit(await run(Deno.args));
}
