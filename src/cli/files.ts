/** `paloma files`: the configuration of what runs beside a gateway, such as a proxy or Prometheus. */
import { join } from "node:path";
import type { Command } from "commander";
import { shipped } from "../shipped.ts";
import { Exit, printResult } from "./output.ts";

const OPS = shipped("ops");

export function addFilesCommand(root: Command): void {
  root.command("files [name]")
    .description("print a configuration file for a proxy, Prometheus, Grafana or systemd; without a name, list them")
    .option("--json", "print JSON")
    .action(async (name: string | undefined, options) => {
      // Rules have tests beside them.
      const names = [...Deno.readDirSync(OPS)].map((file) => file.name).filter((file) => !file.includes("_test"))
        .sort();
      if (name === undefined) return printResult(options, names, () => names.join("\n"));
      if (!names.includes(name)) throw new Exit(2, `There is no file ${name}, only: ${names.join(", ")}.`);
      const content = await Deno.readTextFile(join(OPS, name));
      printResult(options, { name, content }, () => content.trimEnd());
    });
}
