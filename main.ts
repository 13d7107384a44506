/** Paloma's entry: parses the command line and runs the command. */
import { clearInterval, clearTimeout, setInterval, setTimeout } from "node:timers";
import { INSPECT } from "./src/inspect/inspection.ts";

if (import.meta.main) {
  // Packages count on Node's timers. Bundled into the executable they are no packages to Deno 2.6, and find the web's.
  if (Deno.build.standalone) Object.assign(globalThis, { clearInterval, clearTimeout, setInterval, setTimeout });
  // The process that reads one file loads nothing else.
  if (Deno.args[0] === INSPECT) await (await import("./src/inspect/file_facts.ts")).inspectFile(Deno.args[1] ?? "");
  else Deno.exit(await (await import("./src/cli/run.ts")).run(Deno.args));
}
