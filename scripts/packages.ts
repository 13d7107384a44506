/** Which npm packages the executable may load: what its bill of materials lists. */
import { join } from "node:path";

const root = join(import.meta.dirname!, "..");

/** Behind a proxy that signs anew, the machine's own certificates count too. */
export const COMPILER_ENV = {
  DENO_TLS_CA_STORE: Deno.env.get("DENO_TLS_CA_STORE") ?? "mozilla,system",
  // The compiler walks the imports by recursion, and its threads' default stack is too small for a house of this size.
  RUST_MIN_STACK: String(64 * 1024 * 1024),
};

/** Optional packages of Baileys, and one that improves decoded speech, which nobody hears here. */
export const NEVER_LOADED = ["sharp", "@wasm-audio-decoders/opus-ml"];

interface Package {
  /** As the lock file names it. */
  id: string;
  name: string;
  version: string;
}

/** What `deno info --json` says about an entry. */
interface Graph {
  modules: { npmPackage?: string }[];
  npmPackages: Record<string, { name: string; version: string; dependencies: string[] }>;
}

/** The packages that `main.ts` may load. */
export async function packages(): Promise<Package[]> {
  const { modules, npmPackages } = await info();
  const ids = new Set<string>();
  const visit = (id: string): void => {
    const found = npmPackages[id];
    if (found === undefined || ids.has(id) || NEVER_LOADED.includes(found.name)) return;
    ids.add(id);
    found.dependencies.forEach(visit);
  };
  for (const { npmPackage } of modules) if (npmPackage !== undefined) visit(npmPackage);
  return Object.entries(npmPackages).filter(([id]) => ids.has(id))
    .map(([id, { name, version }]) => ({ id, name, version }));
}

async function info(): Promise<Graph> {
  const command = new Deno.Command(Deno.execPath(), {
    // Without --frozen it would bring the lock file up to date, and then everything fits.
    args: ["info", "--frozen", "--json", join(root, "main.ts")],
    cwd: root,
    env: COMPILER_ENV,
    stderr: "inherit",
  });
  const { code, stdout } = await command.output();
  if (code !== 0) Deno.exit(code);
  return JSON.parse(new TextDecoder().decode(stdout));
}
