/**
 * A recipe of the documentation as its reader follows it: its programs are saved in an empty folder, and its commands are
 * typed there. The page is the only place where they are written.
 */
import { join } from "node:path";
import { palomaArguments } from "./gateway_process.ts";
import { guides, type Page, shellBlocks } from "./guides.ts";
import type { Stage } from "./stage.ts";
import { until } from "./until.ts";

/** The files that a page gives: its name in a line of its own, then the block. */
const FILE = /^`([\w.-]+)`:\n\n```\w+\n([^]*?\n)```$/gm;

export function filesOf({ text }: Page): { name: string; content: string }[] {
  return [...text.matchAll(FILE)].map(([, name, content]) => ({ name: name!, content: content! }));
}

/** What stands for something of the reader's own, and what the reader puts there. */
type Filling = readonly (readonly [string, string])[];

export interface RecipeOptions {
  fill?: Filling;
  /** Commands that stay up, ready once they have printed a line. */
  staysUp?: RegExp;
}

export class Recipe implements AsyncDisposable {
  readonly page: Page;
  /** What was printed so far, by all commands. */
  output = "";
  readonly #folder: string;
  readonly #env: Record<string, string>;
  readonly #filled: [string, string][];
  readonly #staysUp: RegExp | undefined;
  readonly #up: { child: Deno.ChildProcess; drained: Promise<unknown> }[] = [];

  private constructor(page: Page, folder: string, env: Record<string, string>, options: RecipeOptions) {
    this.page = page;
    this.#folder = folder;
    this.#env = env;
    this.#filled = (options.fill ?? []).map(([from, to]) => [from, to]);
    this.#staysUp = options.staysUp;
  }

  /** Opens the page at `path` and saves its files, on a machine with `paloma` and the stage's gateway. */
  static async open(path: string, stage: Stage, options: RecipeOptions = {}): Promise<Recipe> {
    const page = guides().find((guide) => guide.path === path)!;
    const root = await Deno.makeTempDir({ prefix: "paloma-recipe-" });
    for (const name of ["bin", "home"]) await Deno.mkdir(join(root, name));
    const { origin, port } = new URL(stage.gateway.baseUrl);
    const [program, args, env] = palomaArguments([], { ...stage.env, PALOMA_PORT: port });
    const script = `#!/bin/sh\nexec '${[program, ...args].join("' '")}' "$@"\n`;
    await Deno.writeTextFile(join(root, "bin/paloma"), script, { mode: 0o755 });
    const fill = [["http://localhost:8080", origin], ["pk_…", stage.apiKey], ...options.fill ?? []] as const;
    const recipe = new Recipe(page, root, { ...env, PATH: `${root}/bin:${env.PATH}` }, { ...options, fill });
    for (const { name, content } of filesOf(page)) {
      await Deno.writeTextFile(recipe.at(name), recipe.#fill(content));
    }
    return recipe;
  }

  /** A file of the reader's folder. */
  at(name: string): string {
    return join(this.#folder, "home", name);
  }

  /** Types every command of the page, in order; `meanwhile` runs while one that it fits does. */
  async follow(meanwhile?: { command: RegExp; run: () => Promise<void> }): Promise<void> {
    const exports: string[] = [];
    for (const { place, text } of shellBlocks(this.page).flat()) {
      const command = this.#fill(text);
      if (command.includes("…")) throw new Error(`${place}: ${command}: nothing stands for … here`);
      if (/^export /.test(command)) {
        exports.push(command);
        continue;
      }
      const printed = await this.#type(place, exports, command, meanwhile?.command.test(text) ? meanwhile.run : null);
      // Secrets and ids that a command shows stand in later ones.
      for (const [id, kind] of printed.matchAll(/\b(whsec_|acc_|ses_|pk_)[\w+/=-]+/g)) {
        this.#filled.push([`${kind}…`, id]);
      }
    }
  }

  #fill(text: string): string {
    return this.#filled.reduceRight((typed, [from, to]) => typed.replaceAll(from, to), text);
  }

  async #type(place: string, exports: string[], command: string, meanwhile: (() => Promise<void>) | null) {
    const staysUp = this.#staysUp?.test(command);
    const child = new Deno.Command("/bin/bash", {
      args: ["-ec", [...exports, staysUp ? `exec ${command}` : command].join("\n")],
      cwd: this.at(""),
      clearEnv: true,
      env: this.#env,
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    let printed = "";
    const drained = Promise.all(
      [child.stdout, child.stderr].map((stream) =>
        stream.pipeThrough(new TextDecoderStream()).pipeTo(
          new WritableStream({
            write: (part) => {
              printed += part;
              this.output += part;
            },
          }),
        )
      ),
    );
    if (staysUp) {
      this.#up.push({ child, drained });
      let ended = false;
      child.status.then(() => ended = true);
      await until(() => ended || printed.includes("\n"), `${place}: ${command}: to be up`);
      if (ended) throw new Error(`${place}: ${command}: ended\n${printed}`);
      return printed;
    }
    await meanwhile?.();
    const { code } = await child.status;
    await drained;
    if (code !== 0) throw new Error(`${place}: ${command}\nended with ${code}:\n${printed.slice(-3000)}`);
    return printed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child, drained } of this.#up) {
      child.kill("SIGTERM");
      await child.status;
      await drained;
    }
    await Deno.remove(this.#folder, { recursive: true });
  }
}
