/**
 * Paloma as a process of its own: a command run to its end, or a gateway that is killed and restarted. It is started from
 * source, or is the executable that PALOMA_EXECUTABLE names, so that every journey can be made with what is shipped.
 */
import { fileURLToPath } from "node:url";
import { GIVE_UP_AFTER_MS } from "../../src/cli/client.ts";
import { freePort } from "./free_port.ts";
import { onTestStore } from "./test_store.ts";
import { inTime } from "./until.ts";

const MAIN = fileURLToPath(new URL("../../main.ts", import.meta.url));
/** What a process needs of ours. Nothing else is handed down, so that settings of the developer's shell change no test. */
const INHERITED = ["PATH", "HOME", "TMPDIR", "DENO_DIR", "XDG_CACHE_HOME", "NO_COLOR"];

export type Environment = Readonly<Record<string, string>>;

export interface RunningGateway {
  /** `http://127.0.0.1:PORT/v1`; the port stays the same over restarts. */
  readonly baseUrl: string;
  /** Everything it wrote to the log so far, restarts included. */
  log(): string;
  /** As SIGTERM does; resolves to the exit code. */
  stop(): Promise<number>;
}

export interface GatewayProcess extends RunningGateway {
  readonly pid: number;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** Starts it again; resolves when it listens. */
  start(): Promise<void>;
}

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a program in this environment and no other. */
function program(path: string, args: readonly string[], env: Environment): Deno.Command {
  return new Deno.Command(path, {
    args: [...args],
    clearEnv: true,
    env: { ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

/** Paloma with these arguments: the program, all of its arguments, and its environment with what Deno needs of ours. */
export function palomaArguments(args: readonly string[], env: Environment): [string, string[], Environment] {
  const inherited = INHERITED.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  });
  const environment = { ...Object.fromEntries(inherited), ...onTestStore(env) };
  const executable = Deno.env.get("PALOMA_EXECUTABLE");
  if (executable) return [executable, [...args], environment];
  return [Deno.execPath(), ["run", "-A", "--no-check", MAIN, ...args], environment];
}

/** A command of Paloma, to be spawned by a test that reads along. */
export function palomaCommand(args: readonly string[], env: Environment): Deno.Command {
  return program(...palomaArguments(args, env));
}

/** Spawns what ends by itself or by what the test does. It is killed if it does not, so that nobody waits for ever. */
export function spawnToEnd(command: Deno.Command): Deno.ChildProcess {
  const child = command.spawn();
  const late = setTimeout(() => child.kill("SIGKILL"), GIVE_UP_AFTER_MS);
  child.status.finally(() => clearTimeout(late));
  return child;
}

/** Runs a command of Paloma to its end, whatever that is. */
export function tryCommand(args: readonly string[], env: Environment): Promise<Outcome> {
  return tryProgram(...palomaArguments(args, env));
}

/** Runs any program to its end, whatever that is. */
export async function tryProgram(path: string, args: readonly string[], env: Environment): Promise<Outcome> {
  const { code, stdout, stderr } = await spawnToEnd(program(path, args, env)).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** Runs a command to its end and resolves to its stdout. Throws with its stderr when it fails. */
export async function runCommand(args: readonly string[], env: Environment): Promise<string> {
  const { code, stdout, stderr } = await tryCommand(args, env);
  if (code !== 0) throw new Error(`paloma ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

/** A command that stays up, ready: it has printed its first line. */
export interface Started {
  readonly pid: number;
  /** The first line of stdout. */
  readonly line: string;
  /** What it wrote to stderr so far. */
  stderr(): string;
  /** Sends the signal; resolves to the exit code. */
  end(signal: Deno.Signal): Promise<number>;
}

/** Starts a command of Paloma that stays up. Throws with its stderr when it ends before it is ready. */
export function startCommand(args: readonly string[], env: Environment): Promise<Started> {
  return startProgram(...palomaArguments(args, env));
}

/** Starts any program that says on a first line that it is ready, and stays up. */
export async function startProgram(path: string, args: readonly string[], env: Environment): Promise<Started> {
  const child = program(path, args, env).spawn();
  let stderr = "";
  const drained = child.stderr.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({ write: (text) => void (stderr += text) }),
  );
  const ended = Promise.all([child.status, drained]).then(([{ code }]) => code);
  const orKilled = <T>(promise: Promise<T>, what: string): Promise<T> =>
    inTime(promise, `${what} ${args.join(" ")}`).catch((error) => {
      try {
        child.kill("SIGKILL");
      } catch { /* It has ended; what it started still has its stderr. */ }
      throw new Error(`${error.message} Its stderr ends with:\n${stderr.slice(-2000)}`);
    });
  const line = await orKilled(firstLine(child.stdout), "the first line of");
  if (line === null) {
    throw new Error(`${args.join(" ")} ended with ${await orKilled(ended, "the end of")}: ${stderr.slice(-2000)}`);
  }
  return {
    pid: child.pid,
    line,
    stderr: () => stderr,
    end(signal) {
      child.kill(signal);
      return orKilled(ended, `${signal} to end`);
    },
  };
}

/** The first line, or null when there is none. What follows it is not read. */
async function firstLine(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string | null> {
  let text = "";
  for await (const part of stream.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.includes("\n")) return text.split("\n")[0]!;
  }
  return null;
}

/** Starts a gateway with these settings, on a port that it keeps, logging all that it can. */
export async function startGatewayProcess(env: Environment): Promise<GatewayProcess> {
  let earlierLog = "";
  const port = String(freePort());
  let running = await serve();
  const { baseUrl } = JSON.parse(running.line);

  function serve(): Promise<Started> {
    return startCommand(["serve", "--json"], { PALOMA_LOG_LEVEL: "trace", ...env, PALOMA_PORT: port });
  }

  return {
    baseUrl,
    get pid() {
      return running.pid;
    },
    log: () => earlierLog + running.stderr(),
    kill: async () => void await running.end("SIGKILL"),
    stop: () => running.end("SIGTERM"),
    async start() {
      earlierLog += running.stderr();
      running = await serve();
    },
  };
}
