/**
 * Processes of a bench: what is measured, its load and its surroundings each have one, so that none of them pays
 * for another. Parent and child speak JSON, one line a message, over the child's stdin and stdout.
 */
import { fileURLToPath } from "node:url";

export interface Child<Ready> extends AsyncDisposable {
  readonly ready: Ready;
  /** Asks the child and waits for its answer. Rejects when it ends instead. */
  ask<Answer>(question: unknown): Promise<Answer>;
  /** Lets it stop by itself; resolves when it is gone. */
  stop(): Promise<void>;
}

/** Starts a module of this folder as a process; resolves when it says that it is ready. */
export async function startChild<Ready>(module: string, argument: unknown): Promise<Child<Ready>> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--allow-all",
      "--no-check",
      "--v8-flags=--expose-gc",
      fileURLToPath(new URL(module, import.meta.url)),
      JSON.stringify(argument),
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const questions = child.stdin.getWriter();
  const answers = linesOf(child.stdout);
  const next = async <T>(): Promise<T> => {
    const { value, done } = await answers.next();
    if (done) throw new Error(`${module} ended early`);
    return JSON.parse(value);
  };
  const stop = async () => {
    await questions.close();
    for await (const _ of answers);
    await child.status;
  };
  const ready = await next<Ready>();
  return {
    ready,
    async ask(question) {
      await questions.write(new TextEncoder().encode(JSON.stringify(question) + "\n"));
      return await next();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

interface ChildRole<Question> {
  /** The first message to the parent. */
  ready: unknown;
  answer?: (question: Question) => Promise<unknown>;
  stop?: () => Promise<void>;
}

/** The child's side: `begin` gets the argument of `startChild`; the process ends when the parent lets it. */
export async function runAsChild<Argument, Question = never>(
  begin: (argument: Argument) => Promise<ChildRole<Question>>,
): Promise<void> {
  const { ready, answer, stop } = await begin(JSON.parse(Deno.args[0]!));
  tell(ready);
  for await (const line of linesOf(Deno.stdin.readable)) tell(await answer?.(JSON.parse(line)));
  await stop?.();
  Deno.exit(0);
}

function tell(message: unknown): void {
  const bytes = new TextEncoder().encode(JSON.stringify(message ?? null) + "\n");
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

async function* linesOf(bytes: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of bytes.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}

/** Memory of this process after garbage collection, bytes. */
export async function restingMemory(): Promise<number> {
  const { gc } = globalThis as { gc?: () => void };
  for (let i = 0; i < 5; i++) {
    gc?.();
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return Deno.memoryUsage().rss;
}

/** Unix ms: comparable between processes of one machine, unlike `performance.now` alone, and finer than `Date.now`. */
export function wallClock(): number {
  return performance.timeOrigin + performance.now();
}
