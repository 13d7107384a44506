/** `paloma openapi`: the OpenAPI document on stdout, without a running gateway. */
import type { Command } from "commander";
import { print } from "./output.ts";

export function addOpenapiCommand(root: Command): void {
  root.command("openapi").description("print the OpenAPI document")
    .option("--json", "on one line")
    .action(async (options) => {
      const { openApiDocument } = await import("../http/docs/openapi.ts");
      print(JSON.stringify(openApiDocument(), null, options.json ? 0 : 2));
    });
}
