/** The gateway as a process of its own: started from source, killed without warning, started again on the same data. */
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../main.ts", import.meta.url));

export interface GatewayProcess {
  /** `http://127.0.0.1:PORT/v1`; the port stays the same over restarts. */
  readonly baseUrl: string;
  readonly pid: number;
  /** Everything the process wrote to stderr so far, restarts included. */
  log(): string;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves to the exit code. */
  stop(): Promise<number>;
  /** Starts it again; resolves when it listens. */
  start(): Promise<void>;
}

/** Runs a command of Paloma to its end. Throws with its stderr when it fails. */
export async function runCommand(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", MAIN, ...args],
    env,
    stdout: "piped",
    stderr: "piped",
  }).output();
  const decoder = new TextDecoder();
  if (code !== 0) throw new Error(`paloma ${args.join(" ")} ended with ${code}: ${decoder.decode(stderr)}`);
  return decoder.decode(stdout);
}

/** Starts a gateway with these settings, on a port of its own choice at first. */
export async function startGatewayProcess(env: Record<string, string>): Promise<GatewayProcess> {
  let child: Deno.ChildProcess | null = null;
  let baseUrl = "";
  let log = "";
  let drained: Promise<unknown> = Promise.resolve();

  async function start(): Promise<void> {
    child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", MAIN, "serve", "--json"],
      env: { PALOMA_LOG_LEVEL: "trace", ...env, PALOMA_PORT: baseUrl ? new URL(baseUrl).port : "0" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    drained = child.stderr.pipeThrough(new TextDecoderStream()).pipeTo(
      new WritableStream({ write: (text) => void (log += text) }),
    );
    const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`the gateway ended before it listened: ${log.slice(-2000)}`);
      text += value;
    }
    baseUrl = JSON.parse(text.split("\n")[0]!).baseUrl;
    void reader.cancel();
  }

  async function end(signal: Deno.Signal): Promise<number> {
    const running = child!;
    running.kill(signal);
    const { code } = await running.status;
    await drained;
    return code;
  }

  await start();
  return {
    get baseUrl() {
      return baseUrl;
    },
    get pid() {
      return child!.pid;
    },
    log: () => log,
    kill: async () => void await end("SIGKILL"),
    stop: () => end("SIGTERM"),
    start,
  };
}
