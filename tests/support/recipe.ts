/**
 * A recipe of the documentation as its reader follows it: its programs are saved in an empty folder, and its commands are
 * typed there. The page is the only place where they are written.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { palomaArguments } from "./gateway_process.ts";
import { guides, type Page, shellBlocks } from "./guides.ts";
import type { Stage } from "./stage.ts";
import { inTime, until } from "./until.ts";

/** The files that a page gives: its name in a line of its own, then the block. */
const FILE = /^`([\w.-]+)`:\n\n```\w+\n([^]*?\n)```$/gm;

export function filesOf({ text }: Page): { name: string; content: string }[] {
  return [...text.matchAll(FILE)].map(([, name, content]) => ({ name: name!, content: content! }));
}

/** What stands for something of the reader's own, and what the reader puts there. */
type Filling = readonly (readonly [string, string])[];

/** Something that happens at a command that fits. */
type Step = readonly [command: RegExp, run: () => Promise<unknown>];

export interface RecipeOptions {
  fill?: Filling;
  /** Of the reader's shell, beside what it has. */
  env?: Readonly<Record<string, string>>;
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
  readonly #up: { child: Deno.ChildProcess; ended: Promise<number> }[] = [];
  readonly #exports: string[] = [];

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
    const recipe = new Recipe(page, root, { ...env, ...options.env, PATH: `${root}/bin:${env.PATH}` }, {
      ...options,
      fill,
    });
    for (const { name, content } of filesOf(page)) {
      await Deno.writeTextFile(recipe.at(name), recipe.#fill(content));
    }
    return recipe;
  }

  /** A file of the reader's folder. */
  at(name: string): string {
    return join(this.#folder, "home", name);
  }

  /** Types every command of the page, in order. */
  async follow(steps: { before?: Step; during?: Step } = {}): Promise<void> {
    for (const { place, text } of shellBlocks(this.page).flat()) {
      const stepOf = (step?: Step) => step?.[0].test(text) ? step[1] : null;
      await stepOf(steps.before)?.();
      const { code, printed } = await this.type(text, stepOf(steps.during));
      // curl ends well with a refusal too.
      if (code !== 0 || printed.includes("/docs#error-")) {
        throw new Error(`${place}: ${text}\nended with ${code}:\n${printed.slice(-3000)}`);
      }
      // Secrets and ids that a command shows stand in later ones.
      for (const [id, kind] of printed.matchAll(/\b(whsec_|acc_|ses_|pk_)[\w+/=-]+/g)) {
        this.#filled.push([`${kind}…`, id]);
      }
    }
  }

  #fill(text: string): string {
    return this.#filled.reduceRight((typed, [from, to]) => typed.replaceAll(from, to), text);
  }

  /** Types one command; resolves to how it ended and what it printed, or, if it stays up, to that once it is ready. */
  async type(text: string, during: (() => Promise<unknown>) | null = null): Promise<{ code: number; printed: string }> {
    const command = this.#fill(text);
    assert.ok(!command.includes("…"), `${command}: nothing stands for … here`);
    if (/^export /.test(command)) {
      this.#exports.push(command);
      return { code: 0, printed: "" };
    }
    const staysUp = this.#staysUp?.test(command);
    const child = new Deno.Command("/bin/bash", {
      args: ["-ec", [...this.#exports, staysUp ? `exec ${command}` : command].join("\n")],
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
    const ended = Promise.all([child.status, drained]).then(([{ code }]) => code);
    let code: number | null = null;
    ended.then((end) => code = end);
    if (staysUp) {
      this.#up.push({ child, ended });
      await until(() => code !== null || printed.includes("\n"), `${command}: to be up`);
      return { code: code ?? 0, printed };
    }
    // A command that fails is not waited for: what it says is the reason.
    await Promise.race([during?.(), ended]);
    return { code: await ended, printed };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child, ended } of this.#up) {
      child.kill("SIGTERM");
      await inTime(ended, "what came up to end by SIGTERM");
    }
    await Deno.remove(this.#folder, { recursive: true });
  }
}
