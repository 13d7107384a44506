/** Which npm packages the executable may load: what it carries, and what its bill of materials lists. */
import { join } from "node:path";

const root = join(import.meta.dirname!, "..");

/** Behind a proxy that signs anew, the machine's own certificates count too. */
export const COMPILER_ENV = {
  DENO_TLS_CA_STORE: Deno.env.get("DENO_TLS_CA_STORE") ?? "mozilla,system",
  // The compiler walks the imports by recursion, and its threads' default stack is too small for a house of this size.
  RUST_MIN_STACK: String(64 * 1024 * 1024),
};

/** Optional packages of Baileys, and one that improves decoded speech, which nobody hears here. */
const NEVER_LOADED = /^(sharp|@wasm-audio-decoders\/opus-ml)@/;

export interface Package {
  /** As the lock file names it. */
  id: string;
  name: string;
  version: string;
  /** In the cache; there may be none of a package for another system. */
  folder: string;
}

/** What `deno info --json` says about an entry. */
interface Graph {
  modules: { npmPackage?: string }[];
  npmPackages: Record<string, { name: string; version: string; dependencies: string[]; registryUrl: string }>;
}

/** The packages that `main.ts` may load, and the others that its lock file knows. */
export async function packagesOf(deno: string): Promise<{ needed: Package[]; others: Package[] }> {
  const { npmCache } = await info<{ npmCache: string }>(deno);
  const { modules, npmPackages } = await info<Graph>(deno, join(root, "main.ts"));
  const ids = new Set<string>();
  const visit = (id: string): void => {
    if (ids.has(id) || NEVER_LOADED.test(id)) return;
    ids.add(id);
    npmPackages[id]?.dependencies.forEach(visit);
  };
  for (const { npmPackage } of modules) if (npmPackage !== undefined) visit(npmPackage);
  const packages = Object.entries(npmPackages).map(([id, { name, version, registryUrl }]): Package => ({
    id,
    name,
    version,
    folder: join(npmCache, new URL(registryUrl).host, name, version),
  }));
  const needed = packages.filter(({ id }) => ids.has(id));
  // One folder may serve several ids, which differ in their peers.
  const folders = new Set(needed.map(({ folder }) => folder));
  return { needed, others: packages.filter(({ folder }) => !folders.has(folder)) };
}

async function info<T>(deno: string, ...args: string[]): Promise<T> {
  const command = new Deno.Command(deno, {
    args: ["info", "--json", ...args],
    cwd: root,
    env: COMPILER_ENV,
    stderr: "inherit",
  });
  const { code, stdout } = await command.output();
  if (code !== 0) Deno.exit(code);
  return JSON.parse(new TextDecoder().decode(stdout));
}
