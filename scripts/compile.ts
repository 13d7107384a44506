/**
 * Builds `dist/paloma`: bundles the source with what it uses of its packages, and compiles the bundle onto a runtime
 * (docs/decisions/0020). The Deno that runs this script bundles; it also compiles, onto its own runtime, unless
 * COMPILE_DENO and DENORT_BIN name others. Arguments go to `deno compile` (`--target …`, `--output …`).
 */
import { join } from "node:path";
import { COMPILER_ENV, NEVER_LOADED } from "./packages.ts";

const root = join(import.meta.dirname!, "..");

const target = Deno.args[Deno.args.indexOf("--target") + 1];
const isForLinux = Deno.args.includes("--target") ? target?.includes("linux") : Deno.build.os === "linux";
/**
 * The gateway starts itself alone, to read files of strangers (`src/inspect/`), and loads no native library. Where the
 * executable will lie is not known here, but on Linux it has a name for itself: no other program can be started there.
 */
const PERMISSIONS = [
  "--allow-read",
  "--allow-write",
  "--allow-net",
  "--allow-env",
  "--allow-sys",
  isForLinux ? "--allow-run=/proc/self/exe" : "--allow-run",
  "--no-prompt",
];
/**
 * For a small server: 55 to 115 MB less after work, for 8 % more processor time to accept (docs/benchmarks.md). V8
 * collects garbage when the heap has grown by so many percent, and when so many MB of new objects have been made.
 */
const V8_FLAGS = "--heap-growing-percent=30,--max-semi-space-size=8";
/** What `src/shipped.ts` finds. */
const SHIPPED = ["src/panel/web", "src/http/docs/web", "docs", "ops"];
/** The compiler resolves the imports of the pages too, which are browsers' business: these find nothing. */
const PAGE_LIBRARIES = ["preact", "preact/hooks", "htm"].map((name) => [name, "data:text/javascript,"]);

/** One folder deep: `src/shipped.ts`. */
const bundle = join(root, "bundle");
await removeBundle();
// --frozen: what is shipped is what the lock file names. Without --minify an error in a log keeps its names.
await run(Deno.execPath(), [
  "bundle",
  "--quiet",
  "--frozen",
  "--platform",
  "deno",
  "--code-splitting",
  ...NEVER_LOADED.flatMap((name) => ["--external", name]),
  "--outdir",
  bundle,
  join(root, "main.ts"),
]);

const output = join(root, "dist", "paloma");
await Deno.mkdir(join(root, "dist"), { recursive: true });
await run(Deno.env.get("COMPILE_DENO") ?? Deno.execPath(), [
  "compile",
  "--quiet",
  "--no-check",
  // It would lie in the machine's temporary folder under a name that anybody there can take first, and be run.
  "--no-code-cache",
  // Else the compiler adds every package of the lock file.
  "--no-config",
  "--unstable-kv",
  "--import-map",
  `data:application/json,${JSON.stringify({ imports: Object.fromEntries(PAGE_LIBRARIES) })}`,
  `--v8-flags=${V8_FLAGS}`,
  ...PERMISSIONS,
  ...(Deno.args.includes("--output") ? [] : ["--output", output]),
  ...Deno.args,
  ...SHIPPED.flatMap((path) => ["--include", join(root, path)]),
  join(bundle, "main.js"),
]);
await removeBundle();

if (!Deno.args.includes("--output")) {
  console.log(`dist/paloma  ${((await Deno.stat(output)).size / 1e6).toFixed(0)} MB`);
}

/** Ends the script as the command ends, where that fails. */
async function run(deno: string, args: string[]): Promise<void> {
  const command = new Deno.Command(deno, { args, cwd: root, env: COMPILER_ENV, stdout: "null", stderr: "inherit" });
  const { code } = await command.output();
  if (code !== 0) Deno.exit(code);
}

async function removeBundle(): Promise<void> {
  try {
    await Deno.remove(bundle, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
