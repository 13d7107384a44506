/** A command on a terminal, as a person sees it. */
import { isFile } from "./tools.ts";
import { palomaArguments } from "./gateway_process.ts";

const PROGRAM = "/usr/bin/script";

/** Whether this machine can make a terminal. */
export const HAS_TERMINAL = Deno.build.os === "linux" && isFile(PROGRAM);

/** What a person does when the terminal shows something new; `shown` is all of it so far. */
type Seen = (shown: string, terminal: { type(text: string): Promise<void> }) => Promise<unknown> | void;

/** Runs a command to its end; resolves to what the terminal has shown, and the exit code. */
export async function onTerminal(
  args: readonly string[],
  env: Record<string, string>,
  { rows = 50, columns = 120, seen }: { rows?: number; columns?: number; seen: Seen },
): Promise<{ code: number; shown: string }> {
  const [program, before, environment] = palomaArguments(args, env);
  const command = [program, ...before].map((arg) => `'${arg}'`).join(" ");
  const child = new Deno.Command(PROGRAM, {
    args: ["-qec", `stty rows ${rows} cols ${columns}; exec ${command}`, "/dev/null"],
    clearEnv: true,
    env: { ...environment },
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  const terminal = { type: (text: string) => writer.write(new TextEncoder().encode(text)) };
  let shown = "";
  for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
    shown += part;
    await seen(shown, terminal);
  }
  await writer.close().catch(() => {});
  return { code: (await child.status).code, shown };
}
