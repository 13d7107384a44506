/** The TypeScript client as its users have it: built, packed, and installed in a folder of theirs. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ROOT } from "./guides.ts";
import { tempFolder } from "./temp_folder.ts";

const CLIENT = join(ROOT, "clients/typescript");

/** `sender.js`: twenty sends at once, each with its number as text. */
const SENDER = `
import { Paloma } from "paloma-client";
const { BASE_URL, API_KEY, SENDS, TO } = process.env;
const paloma = new Paloma(BASE_URL, API_KEY, { attempts: 30 });
let next = 0;
async function work() {
  while (next < Number(SENDS)) {
    await paloma.sendText({ to: TO, text: "number " + next++ });
    console.log("accepted");
  }
}
await Promise.all(Array.from({ length: 20 }, work));
`;

export interface NodeProject extends AsyncDisposable {
  readonly path: string;
  /** Type-checks a file of the project as strictly as there is; throws with what the compiler says. */
  check(file: string): Promise<void>;
  /** Starts a module of the project under Node.js. */
  spawn(file: string, env?: Record<string, string>): Deno.ChildProcess;
  /** Runs one to its end; resolves to its stdout. */
  run(file: string, env?: Record<string, string>): Promise<string>;
}

async function run(program: string, args: string[], cwd: string): Promise<void> {
  const { code, stdout, stderr } = await new Deno.Command(program, { args, cwd, stdin: "null" }).output();
  const said = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("");
  assert.equal(code, 0, `${program} ${args.join(" ")} ended with ${code}: ${said}`);
}

/** A project with `paloma-client` in its `node_modules`. Needs npm, and no registry. */
export async function projectWithClient(): Promise<NodeProject> {
  await using stack = new AsyncDisposableStack();
  const { path } = stack.use(await tempFolder());
  const source = join(path, "source");
  for (const folder of [source, join(source, "src")]) await Deno.mkdir(folder);
  const sources = [...Deno.readDirSync(join(CLIENT, "src"))].map(({ name }) => `src/${name}`);
  for (const name of ["package.json", "tsconfig.json", "README.md", "LICENSE", ...sources]) {
    await Deno.copyFile(join(CLIENT, name), join(source, name));
  }
  const { version, devDependencies } = JSON.parse(await Deno.readTextFile(join(CLIENT, "package.json")));
  const tsc = (args: string[]) =>
    run(Deno.execPath(), ["run", "-A", `npm:typescript@${devDependencies.typescript}/tsc`, ...args], ROOT);
  await tsc(["-p", source]);
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", path], source);
  await Deno.writeTextFile(join(path, "sender.js"), SENDER);
  await Deno.writeTextFile(join(path, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", `./paloma-client-${version}.tgz`], path);

  const spawn = (file: string, env: Record<string, string> = {}) =>
    new Deno.Command("node", { args: [file], cwd: path, env, stdin: "null", stdout: "piped", stderr: "piped" }).spawn();
  const kept = stack.move();
  return {
    path,
    check: (file) =>
      tsc([
        "--noEmit",
        "--strict",
        "--exactOptionalPropertyTypes",
        "--module",
        "nodenext",
        join(path, file),
      ]),
    spawn,
    async run(file, env) {
      const { code, stdout, stderr } = await spawn(file, env).output();
      assert.equal(code, 0, `${file} ended with ${code}: ${new TextDecoder().decode(stderr)}`);
      return new TextDecoder().decode(stdout);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
