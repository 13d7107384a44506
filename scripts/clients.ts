/** Writes what the clients take from the OpenAPI document: types, and the product's version. */
import { join } from "node:path";
import { openApiDocument } from "../src/http/docs/openapi.ts";
import { phpTypes } from "./clients/php.ts";
import { pythonTypes } from "./clients/python.ts";
import { schemasOf } from "./clients/schemas.ts";
import { typescriptTypes } from "./clients/typescript.ts";

const ROOT = join(import.meta.dirname!, "..");

/** The files that are made from the document, with what they have to be. */
export async function generatedFiles(): Promise<Map<string, string>> {
  const document = openApiDocument();
  const schemas = schemasOf(document);
  return new Map([
    ["clients/typescript/src/api.ts", await formatted("ts", await typescriptTypes(document))],
    ["clients/typescript/package.json", await versioned("clients/typescript/package.json", document.info.version)],
    ["clients/php/src/Types.php", phpTypes(schemas)],
    ["clients/php/composer.json", await versioned("clients/php/composer.json", document.info.version)],
    ["clients/python/src/paloma_client/types.py", pythonTypes(schemas)],
    ["clients/python/pyproject.toml", await versioned("clients/python/pyproject.toml", document.info.version)],
  ]);
}

/** The file as it is, with this version. */
async function versioned(path: string, version: string): Promise<string> {
  const text = await Deno.readTextFile(join(ROOT, path));
  return text.replace(/(^version = |"version": )"[^"]*"/m, `$1${JSON.stringify(version)}`);
}

async function formatted(ext: string, text: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--config", join(ROOT, "deno.json"), "--ext", ext, "-"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const output = child.output();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  return new TextDecoder().decode((await output).stdout);
}

if (import.meta.main) {
  for (const [path, text] of await generatedFiles()) await Deno.writeTextFile(join(ROOT, path), text);
}
