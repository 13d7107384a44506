/**
 * Writes `product.lock`: deno.lock without what only tests and checks load. Deno downloads every package of a lock,
 * used or not, and the first command of a new user should not wait for those.
 */
import { fileURLToPath } from "node:url";

const ROOT = new URL("../", import.meta.url);
export const PRODUCT_LOCK = new URL("product.lock", ROOT);

interface Graph {
  modules: readonly { npmPackage?: string }[];
  npmPackages: Readonly<Record<string, { dependencies: readonly string[] }>>;
}

/** Resolves to the text of the lock for the product, with every package in the version that deno.lock has. */
export async function productLock(): Promise<string> {
  const { modules, npmPackages } = await graph();
  const used = new Set<string>();
  const left = modules.flatMap(({ npmPackage }) => npmPackage ?? []);
  for (let name = left.pop(); name !== undefined; name = left.pop()) {
    if (used.has(name)) continue;
    used.add(name);
    left.push(...npmPackages[name]!.dependencies);
  }
  const lock = JSON.parse(await Deno.readTextFile(new URL("deno.lock", ROOT)));
  const keep = <T>(entries: Record<string, T>, isUsed: (entry: [string, T]) => boolean) =>
    Object.fromEntries(Object.entries(entries).filter(isUsed));
  const isUsed = ([specifier, version]: [string, string]) =>
    used.has(`${specifier.replace(/^npm:/, "").replace(/(?<=.)@.*$/, "")}@${version}`);
  const product = {
    ...lock,
    specifiers: keep<string>(lock.specifiers, isUsed),
    npm: keep<unknown>(lock.npm, ([name]) => used.has(name)),
  };
  return JSON.stringify(product, null, 2) + "\n";
}

/** Resolves to the modules that the entry loads, now or later, and all packages of deno.lock. */
async function graph(): Promise<Graph> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "main.ts"],
    cwd: fileURLToPath(ROOT),
    stderr: "inherit",
  });
  return JSON.parse(new TextDecoder().decode((await command.output()).stdout));
}

if (import.meta.main) await Deno.writeTextFile(PRODUCT_LOCK, await productLock());
