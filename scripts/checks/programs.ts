/** Programs of other languages that checks install and run. */
import { join } from "node:path";

/** Where they are installed, kept for the next time. */
export const TOOLS = join(
  Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME")!, ".cache"),
  "paloma-tools",
);

/** Runs a program to its end and resolves to its stdout. Throws with what it wrote if it fails. */
export async function run(
  cwd: string,
  name: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(name, { args, cwd, env, stdin: "null" }).output();
  const [said, complained] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  if (code !== 0) {
    throw new Error(`${name} ${args.join(" ")} ended with ${code}:\n${said}\n${complained}`.slice(0, 4_000));
  }
  return said!;
}

export async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

export async function canRun(name: string): Promise<boolean> {
  return await new Deno.Command("which", { args: [name] }).output().then(({ success }) => success);
}
