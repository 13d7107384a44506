/**
 * Builds `dist/paloma`. Takes the compiler from COMPILE_DENO and the runtime from DENORT_BIN where they are set, else
 * the Deno that runs this script and its own runtime. Arguments go to `deno compile` (`--target …`, `--output …`).
 */
import { join } from "node:path";

const root = join(import.meta.dirname!, "..");
const compiler = Deno.env.get("COMPILE_DENO") ?? Deno.execPath();
/** Behind a proxy that signs anew, the machine's own certificates count too. */
const env = {
  DENO_TLS_CA_STORE: Deno.env.get("DENO_TLS_CA_STORE") ?? "mozilla,system",
  // The compiler walks the imports by recursion, and its threads' default stack is too small for a house of this size.
  RUST_MIN_STACK: String(64 * 1024 * 1024),
};

/** The gateway starts itself alone, to read files of strangers (`src/inspect/`), and loads no native library. */
const PERMISSIONS = [
  "--allow-read",
  "--allow-write",
  "--allow-net",
  "--allow-env",
  "--allow-sys",
  "--allow-run",
  "--no-prompt",
];
/** Peer dependencies of Baileys that it tries to load and does without; `deno compile` would carry them. */
const NEVER_LOADED = /^sharp@/;
/** What packages carry for those who develop with them. */
const FOR_DEVELOPERS = /\.([cm]?ts|map|md|markdown|flow)$|^(__tests__|tests?|benchmarks?|examples?|docs)$/i;

/** What `deno info --json` tells of an entry. */
interface Graph {
  modules: { npmPackage?: string }[];
  npmPackages: Record<string, { name: string; version: string; dependencies: string[]; registryUrl: string }>;
}

async function info<T>(...args: string[]): Promise<T> {
  const command = new Deno.Command(compiler, { args: ["info", "--json", ...args], cwd: root, env, stderr: "inherit" });
  const { code, stdout } = await command.output();
  if (code !== 0) Deno.exit(code);
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** The folders of the packages that the entry may load, and of the others: `deno compile` carries both. */
async function packageFolders(): Promise<{ needed: Set<string>; others: Set<string> }> {
  const { npmCache } = await info<{ npmCache: string }>();
  const { modules, npmPackages } = await info<Graph>(join(root, "main.ts"));
  const ids = new Set<string>();
  const visit = (id: string): void => {
    if (ids.has(id) || NEVER_LOADED.test(id)) return;
    ids.add(id);
    npmPackages[id]?.dependencies.forEach(visit);
  };
  for (const { npmPackage } of modules) if (npmPackage !== undefined) visit(npmPackage);
  const folders = (wanted: boolean) =>
    new Set(
      Object.entries(npmPackages).filter(([id]) => ids.has(id) === wanted).map(([, { name, version, registryUrl }]) =>
        join(npmCache, new URL(registryUrl).host, name, version)
      ),
    );
  const needed = folders(true);
  // One folder may stand for several ids, which differ in their peers.
  return { needed, others: folders(false).difference(needed) };
}

/** What is in the folder; nothing where there is none, as with a package for another system. */
function entriesOf(folder: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(folder)];
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** Files and folders below the folder that are for developers alone. */
function* filesForDevelopers(folder: string): Generator<string> {
  for (const { name, isDirectory } of entriesOf(folder)) {
    const path = join(folder, name);
    if (FOR_DEVELOPERS.test(name)) yield path;
    else if (isDirectory) yield* filesForDevelopers(path);
  }
}

const { needed, others } = await packageFolders();
const left = [
  // The entries of a package's folder, as the folder itself cannot be left out.
  ...[...others].flatMap((folder) => entriesOf(folder).map(({ name }) => join(folder, name))),
  ...[...needed].flatMap((folder) => [...filesForDevelopers(folder)]),
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
    ...["src/panel/web", "src/http/docs"].flatMap((folder) => ["--include", join(root, folder)]),
    ...left.flatMap((path) => ["--exclude", path]),
    join(root, "main.ts"),
  ],
  cwd: root,
  env,
  stdout: "null",
  stderr: "inherit",
}).output();
if (code !== 0) Deno.exit(code);

if (!Deno.args.includes("--output")) {
  console.log(`dist/paloma  ${((await Deno.stat(output)).size / 1e6).toFixed(0)} MB`);
}
