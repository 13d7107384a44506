/**
 * A reader of the documentation at a terminal: types its commands into a shell on a machine that is a folder. What this
 * machine cannot do (Docker, systemd, another host) is done by stand-ins that hold what they are given against the
 * project's files.
 */
import { join } from "node:path";
import { palomaArguments } from "./gateway_process.ts";
import { ROOT, type ShellCommand } from "./guides.ts";
import { inTime, until } from "./until.ts";

/** Folders of a machine that the pages write to. */
const PLACES = /(?<=[\s='"])\/(?=(?:backups|etc|srv|tmp|usr)(?:[\/\s]|$))/g;

/** Commands that stay up, and what they say when they are ready. */
const STAYS_UP: readonly (readonly [RegExp, RegExp])[] = [
  [
    /^paloma (?:serve|api|worker)$|^npx .* (?:task start|main\.ts serve)$/,
    /Paloma listens on|The Paloma worker is running/,
  ],
  [/^npx .* task sandbox$/, /"apiKey"|x-api-key/],
  [/^paloma listen/, /Ctrl-C/],
  [/^deno serve/, /Listening on/],
];

/** Stand-ins by name. `$machine` is the folder that is the machine, `$project` the source. */
const STAND_INS: Readonly<Record<string, string>> = {
  sudo: `exec "$@"`,
  // Another machine's port, brought here.
  ssh: `[ "$1 $#" = "-L 3" ] && echo "$2" | grep -qx "[0-9]*:127.0.0.1:[0-9]*"`,
  systemctl: `[ "$1 $2" = "enable --now" ] || exit 2
    program=$(sed -n 's/^ExecStart=\\([^ ]*\\).*/\\1/p' "$machine/etc/systemd/system/$3.service")
    [ -x "$machine$program" ]`,
  // The container has a volume of its own.
  docker: `grep -q "^  $4:$" compose.yaml || [ "$2" = up ] || exit 2
    case "$1 $2 $3" in
      "compose up -d") ;;
      "compose exec paloma") shift 3; PALOMA_DATA_DIR=$machine/volume exec "$@" ;;
      *) exit 2 ;;
    esac`,
  // A port that is free; the pages' own may be taken.
  deno: `[ "$1" = serve ] && shift && cd "$project" && exec "$deno" serve --port 0 "$@"`,
  // `npx -y deno@VERSION …`, with the Deno that is here.
  npx: `[ "$1" = -y ] && shift 2 && cd "$project"
    PALOMA_DATA_DIR=$machine/source PALOMA_PORT=0 PALOMA_SANDBOX_PORT=0 exec "$deno" "$@"`,
};

export class Terminal implements AsyncDisposable {
  readonly #up: Deno.ChildProcess[] = [];
  readonly #read: Promise<unknown>[] = [];

  private constructor(readonly machine: string, readonly env: Record<string, string>) {}

  static async open(env: Record<string, string>): Promise<Terminal> {
    const machine = await Deno.makeTempDir({ prefix: "paloma-terminal-" });
    for (const folder of ["bin", "home", "backups", "etc/systemd/system", "srv", "tmp", "usr/local/bin"]) {
      await Deno.mkdir(join(machine, folder), { recursive: true });
    }
    const [program, args, inherited] = palomaArguments([], env);
    const variables = { ...inherited, machine, project: ROOT, deno: Deno.execPath() };
    const script = (name: string, text: string) =>
      Deno.writeTextFile(join(machine, "bin", name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    for (const [name, text] of Object.entries(STAND_INS)) await script(name, text);
    await script("paloma", `exec '${[program, ...args].join("' '")}' "$@"`);
    // The source as it was checked out, with what `deno task compile` makes.
    for (const name of ["ops", "compose.yaml"]) {
      await Deno.symlink(join(ROOT, name), join(machine, "home", name));
    }
    await Deno.mkdir(join(machine, "home/dist"));
    await Deno.copyFile(join(machine, "bin/paloma"), join(machine, "home/dist/paloma"));
    return new Terminal(machine, { ...variables, PATH: `${join(machine, "bin")}:${inherited.PATH}` });
  }

  /** A path of the pages, where it is on this machine. */
  at(path: string): string {
    return join(this.machine, path);
  }

  /**
   * Types the command, after the exports of its block. Resolves to what it printed when it has ended, or when it is up;
   * `meanwhile` gets what it has printed so far. Throws with the page and line when it fails.
   */
  async type({ place, text }: ShellCommand, exports: readonly string[] = [], meanwhile?: () => Promise<void>) {
    const ready = STAYS_UP.find(([command]) => command.test(text))?.[1];
    const typed = text.replaceAll(PLACES, `${this.machine}/`);
    const child = new Deno.Command("/bin/sh", {
      args: ["-c", [...exports, ready ? `exec ${typed}` : typed].join("\n")],
      cwd: join(this.machine, "home"),
      clearEnv: true,
      env: this.env,
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const printed = { stdout: "", stderr: "" };
    const drained = (["stdout", "stderr"] as const).map((name) =>
      child[name].pipeThrough(new TextDecoderStream()).pipeTo(
        new WritableStream({ write: (part) => void (printed[name] += part) }),
      )
    );
    const ended = Promise.all([child.status, ...drained]).then(([status]) => status);
    const failed = (what: string) =>
      new Error(`${place}: ${text}\n${what}:\n${printed.stdout.slice(-1000)}${printed.stderr.slice(-2000)}`);
    await meanwhile?.();
    if (!ready) {
      const { code } = await ended;
      if (code !== 0) throw failed(`ended with ${code}`);
      return printed.stdout;
    }
    let status: Deno.CommandStatus | null = null;
    ended.then((end) => status = end);
    await until(() => status !== null || ready.test(printed.stdout + printed.stderr), `${place}: ${text}: to be up`)
      .catch((error) => {
        child.kill("SIGKILL");
        throw failed(String(error));
      });
    if (status !== null) throw failed(`ended with ${(status as Deno.CommandStatus).code}`);
    this.#up.push(child);
    this.#read.push(ended);
    return printed.stdout;
  }

  /** Ends what came up last. Throws when it ends otherwise than well. */
  async end({ place, text }: ShellCommand): Promise<void> {
    const child = this.#up.pop()!;
    child.kill("SIGTERM");
    const { code } = await inTime(child.status, `${place}: ${text}: to end by SIGTERM`);
    if (code !== 0) throw new Error(`${place}: ${text}: SIGTERM ended it with ${code}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#up) {
      child.kill("SIGTERM");
    }
    await inTime(Promise.all(this.#read), "what came up to end by SIGTERM");
    await Deno.remove(this.machine, { recursive: true });
  }
}

/** Whether the command stays up until it is interrupted. */
export const staysUp = ({ text }: ShellCommand) => STAYS_UP.some(([command]) => command.test(text));
