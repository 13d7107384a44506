/**
 * Builds `dist/paloma`. Takes the compiler from COMPILE_DENO and the runtime from DENORT_BIN where they are set, else
 * the Deno that runs this script and its own runtime. Arguments go to `deno compile` (`--target …`, `--output …`).
 */
import { join } from "node:path";
import { COMPILER_ENV, packagesOf } from "./packages.ts";

const root = join(import.meta.dirname!, "..");
const compiler = Deno.env.get("COMPILE_DENO") ?? Deno.execPath();

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
/** Files that packages carry for developers only, and a second build of a decoder that is never loaded. */
const LEFT_OUT = /\.([cm]?ts|map|md|markdown|flow|opus-ml\.min\.js)$|^(__tests__|tests?|benchmarks?|examples?|docs)$/i;

/** The folder's entries; none when it does not exist. */
function entriesOf(folder: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(folder)];
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** Files and folders below the folder that are never loaded. */
function* leftOutOf(folder: string): Generator<string> {
  for (const { name, isDirectory } of entriesOf(folder)) {
    const path = join(folder, name);
    if (LEFT_OUT.test(name)) yield path;
    else if (isDirectory) yield* leftOutOf(path);
  }
}

const { needed, others } = await packagesOf(compiler);
const left = [
  // The entries of a package's folder, as the folder itself cannot be left out.
  ...others.flatMap(({ folder }) => entriesOf(folder).map(({ name }) => join(folder, name))),
  ...new Set(needed.flatMap(({ folder }) => [...leftOutOf(folder)])),
];

const output = join(root, "dist", "paloma");
await Deno.mkdir(join(root, "dist"), { recursive: true });
const { code } = await new Deno.Command(compiler, {
  // --frozen: what is shipped is what the lock file names, and nothing is asked of a registry that is cached already.
  args: [
    "compile",
    "--frozen",
    "--no-check",
    ...PERMISSIONS,
    ...(Deno.args.includes("--output") ? [] : ["--output", output]),
    ...Deno.args,
    ...["src/panel/web", "src/http/docs", "docs"].flatMap((folder) => ["--include", join(root, folder)]),
    ...left.flatMap((path) => ["--exclude", path]),
    join(root, "main.ts"),
  ],
  cwd: root,
  env: COMPILER_ENV,
  stdout: "null",
  stderr: "inherit",
}).output();
if (code !== 0) Deno.exit(code);

if (!Deno.args.includes("--output")) {
  console.log(`dist/paloma  ${((await Deno.stat(output)).size / 1e6).toFixed(0)} MB`);
}
