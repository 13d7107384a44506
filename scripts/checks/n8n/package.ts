/** The node package, built by n8n's own tools in a folder outside the repository. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { EVENT_NAMES } from "../../../src/event/event.ts";
import { run, TOOLS } from "../programs.ts";

const SOURCE = new URL("../../../integrations/n8n/", import.meta.url).pathname;
const OWN = ["credentials", "icons", "nodes", "workflows"];

/** n8n needs a newer Node.js than most systems have. */
const NODE = join(TOOLS, "n8n/node");
export const PATH = `${join(NODE, "node_modules/node/bin")}:${Deno.env.get("PATH")}`;

export const QUIET = ["--silent", "--no-audit", "--no-fund"];
export const npm = (folder: string, ...args: string[]) => run(folder, "npm", args, { PATH });

/** Installs these packages in `folder` unless they are there; install scripts run only if `flags` leave it to them. */
export async function install(folder: string, packages: string[], flags = ["--ignore-scripts"]): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  const wanted = packages.join("\n");
  if (await Deno.readTextFile(join(folder, "installed")).catch(() => "") === wanted) return;
  await npm(folder, "install", ...QUIET, "--no-save", ...flags, ...packages);
  await Deno.writeTextFile(join(folder, "installed"), wanted);
}

async function copy(from: string, to: string): Promise<void> {
  if (!(await Deno.stat(from)).isDirectory) return await Deno.copyFile(from, to);
  await Deno.mkdir(to, { recursive: true });
  for await (const { name } of Deno.readDir(from)) await copy(join(from, name), join(to, name));
}

/** Lints and compiles the package; resolves to where it was built, and what `npm pack` made of it. */
export async function buildPackage(): Promise<{ folder: string; packed: string }> {
  await install(NODE, ["node@24.21.0"], []);
  const folder = join(TOOLS, "n8n/package");
  const manifest = JSON.parse(await Deno.readTextFile(join(SOURCE, "package.json")));
  await install(folder, Object.entries(manifest.devDependencies).map(([name, version]) => `${name}@${version}`));
  for (const name of [...OWN, "dist"]) await Deno.remove(join(folder, name), { recursive: true }).catch(() => {});
  for await (const { name, isFile } of Deno.readDir(SOURCE)) {
    if (isFile || OWN.includes(name)) await copy(join(SOURCE, name), join(folder, name));
  }
  const tool = join(folder, "node_modules/.bin/n8n-node");
  // A warning is a fault as well.
  const lint = await run(folder, tool, ["lint"], { PATH });
  if (lint.includes("warning")) throw new Error(lint);
  await run(folder, tool, ["build"], { PATH });
  await offersEveryEvent(folder);
  const [packed] = JSON.parse(await npm(folder, "pack", "--json", "--ignore-scripts"));
  return { folder, packed: join(folder, packed.filename) };
}

/** A new event of the gateway is one of the trigger's menu as well; the one of a test starts nothing. */
async function offersEveryEvent(folder: string): Promise<void> {
  const script = "JSON.stringify(require('./dist/nodes/PalomaTrigger/events').EVENTS.map(({ value }) => value))";
  const offered = JSON.parse(await run(folder, "node", ["-p", script], { PATH }));
  assert.deepEqual(offered.sort(), EVENT_NAMES.filter((name) => name !== "webhook.test").sort());
}
