/**
 * Builds `dist/paloma`. Takes the compiler from COMPILE_DENO and the runtime from DENORT_BIN where they are set, else
 * the Deno that runs this script and its own runtime.
 */
import { join } from "node:path";

const root = join(import.meta.dirname!, "..");
const output = join(root, "dist", "paloma");
await Deno.mkdir(join(root, "dist"), { recursive: true });

const compiler = Deno.env.get("COMPILE_DENO") ?? Deno.execPath();
const { code } = await new Deno.Command(compiler, {
  // --frozen: what is shipped is what the lock file names, and nothing is asked of a registry that is cached already.
  args: [
    "compile",
    "--frozen",
    "--no-check",
    "--allow-all",
    "--output",
    output,
    "--include",
    join(root, "src", "panel"),
    "--include",
    join(root, "src", "http", "docs"),
    join(root, "main.ts"),
  ],
  cwd: root,
  // Behind a proxy that signs anew, the machine's own certificates count too.
  env: { DENO_TLS_CA_STORE: Deno.env.get("DENO_TLS_CA_STORE") ?? "mozilla,system" },
  stdout: "inherit",
  stderr: "inherit",
}).output();
if (code !== 0) Deno.exit(code);

const { size } = await Deno.stat(output);
console.log(`dist/paloma  ${(size / 1e6).toFixed(0)} MB`);
