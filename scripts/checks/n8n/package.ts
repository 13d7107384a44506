/** The node package, built by n8n's own tools in a folder outside the repository. */
import { join } from "node:path";

const SOURCE = new URL("../../../integrations/n8n/", import.meta.url).pathname;
const OWN = ["credentials", "icons", "nodes", "workflows"];

/** What is installed, kept for the next time. */
export const tools = join(
  Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME")!, ".cache"),
  "paloma-tools",
  "n8n",
);

/** n8n needs a newer Node.js than most systems have. */
const NODE = join(tools, "node/node_modules/node/bin");
export const PATH = `${NODE}:${Deno.env.get("PATH")}`;

/** Runs a program to its end, with n8n's Node.js first on the PATH, and hands back what it wrote. Throws, with all of that, when it fails. */
export async function run(
  cwd: string,
  [program, ...args]: [string, ...string[]],
  env: Record<string, string> = {},
): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(program, { args, cwd, env: { PATH, ...env }, stdin: "null" })
    .output();
  const [said, complained] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}:\n${said}\n${complained}`);
  return said!;
}

/** Installs these packages in `folder` unless they are there; install scripts run only if `flags` leave it to them. */
export async function install(folder: string, packages: string[], flags = ["--ignore-scripts"]): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  const wanted = packages.join("\n");
  if (await Deno.readTextFile(join(folder, "installed")).catch(() => "") === wanted) return;
  const quiet = ["--silent", "--no-audit", "--no-fund", "--no-save", ...flags];
  await run(folder, ["npm", "install", ...quiet, ...packages]);
  await Deno.writeTextFile(join(folder, "installed"), wanted);
}

async function copy(from: string, to: string): Promise<void> {
  if (!(await Deno.stat(from)).isDirectory) return await Deno.copyFile(from, to);
  await Deno.mkdir(to, { recursive: true });
  for await (const { name } of Deno.readDir(from)) await copy(join(from, name), join(to, name));
}

/** Lints and compiles the package; resolves to the path of what `npm pack` makes of it. */
export async function buildPackage(): Promise<string> {
  await install(join(tools, "node"), ["node@24.21.0"], []);
  const folder = join(tools, "package");
  const manifest = JSON.parse(await Deno.readTextFile(join(SOURCE, "package.json")));
  await install(folder, Object.entries(manifest.devDependencies).map(([name, version]) => `${name}@${version}`));
  for (const name of [...OWN, "dist"]) await Deno.remove(join(folder, name), { recursive: true }).catch(() => {});
  for await (const { name, isFile } of Deno.readDir(SOURCE)) {
    if (isFile || OWN.includes(name)) await copy(join(SOURCE, name), join(folder, name));
  }
  const tool = join(folder, "node_modules/.bin/n8n-node");
  // A warning is a fault as well.
  const lint = await run(folder, [tool, "lint"]);
  if (lint.includes("warning")) throw new Error(lint);
  await run(folder, [tool, "build"]);
  const [packed] = JSON.parse(await run(folder, ["npm", "pack", "--json", "--ignore-scripts"]));
  return join(folder, packed.filename);
}
