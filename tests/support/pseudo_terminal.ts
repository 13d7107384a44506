/** A command on a terminal, as a person sees it. */
import { isFile } from "./tools.ts";
import { palomaArguments, spawnToEnd } from "./gateway_process.ts";

const PROGRAM = "/usr/bin/script";

/** Whether this machine can make a terminal. */
export const HAS_TERMINAL = Deno.build.os === "linux" && isFile(PROGRAM);

/** Runs a command to its end, which a person brings about by `type` when the terminal shows `when`. */
export async function onTerminal(
  args: readonly string[],
  env: Record<string, string>,
  { rows = 50, columns = 120, when, type }: { rows?: number; columns?: number; when: string; type: string },
): Promise<{ code: number; shown: string }> {
  const [program, before, environment] = palomaArguments(args, env);
  const command = [program, ...before].map((arg) => `'${arg}'`).join(" ");
  const child = spawnToEnd(
    new Deno.Command(PROGRAM, {
      args: ["-qec", `stty rows ${rows} cols ${columns}; exec ${command}`, "/dev/null"],
      clearEnv: true,
      env: { ...environment },
      stdin: "piped",
      stdout: "piped",
    }),
  );
  const writer = child.stdin.getWriter();
  let shown = "";
  for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
    const isNew = !shown.includes(when) && (shown + part).includes(when);
    shown += part;
    if (isNew) await writer.write(new TextEncoder().encode(type));
  }
  await writer.close().catch(() => {});
  return { code: (await child.status).code, shown };
}
