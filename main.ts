/** Paloma's entry: parses the command line and runs the command. */
import { run } from "./src/cli/program.ts";
import { repairCiphers } from "./src/repair_ciphers.ts";

if (import.meta.main) {
  repairCiphers();
  Deno.exit(await run(Deno.args));
}
