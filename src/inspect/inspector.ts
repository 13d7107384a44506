/**
 * Reads untrusted files in a process of their own, one a file, and ends it when it takes too long or too much memory:
 * the file then goes without these facts. A process and not a worker thread, because nothing stops a thread
 * that runs in a loop: `Worker.terminate()` returns, and the loop goes on (docs/decisions/0015).
 */
import { fileURLToPath } from "node:url";
import { readFile } from "node:fs/promises";
import PQueue from "p-queue";
import { type Clock, sleep } from "../runtime.ts";
import { timeLimit } from "../base/within.ts";
import { type FileFacts, INSPECT, type UntrustedFile } from "./inspection.ts";

/** Larger PDFs go without a page count. */
const PDF_BYTES = 8 * 1024 * 1024;
/** For one file, the start of the process included; an honest file takes tenths of a second. */
const RUN_MS = 3_000;
/** The wait for a turn included: behind a flood of slow files a message leaves without its preview. */
const FACTS_WITHIN_MS = 8_000;
const AT_ONCE = 2;
/** Of the whole process; the runtime takes some 60 MB of it. Watched on Linux; the heap is limited everywhere. */
const MEMORY_BYTES = 160 * 1024 ** 2;
const HEAP_MB = 80;
const WATCH_EVERY_MS = 20;
/** What our process needs to find its code; none of the gateway's settings and secrets. */
const ENVIRONMENT = ["HOME", "PATH", "DENO_DIR", "XDG_CACHE_HOME", "USERPROFILE", "LOCALAPPDATA", "SYSTEMROOT"];

interface InspectOptions {
  /** Ends the inspection; it then resolves to nothing. */
  signal: AbortSignal;
}

/**
 * The facts of a file, or of an image given as bytes; none when it cannot be read within the bounds. Never
 * rejects.
 */
export type Inspect = (file: UntrustedFile | Uint8Array, options: InspectOptions) => Promise<FileFacts>;

interface InspectorOptions {
  clock: Clock;
  /** Smaller ones for tests. */
  bounds?: { runMs: number; memoryBytes: number };
}

export function makeInspector({ clock, bounds }: InspectorOptions): Inspect {
  const { runMs = RUN_MS, memoryBytes = MEMORY_BYTES } = bounds ?? {};
  const turns = new PQueue({ concurrency: AT_ONCE });

  async function inOwnProcess(file: UntrustedFile | Uint8Array, signal: AbortSignal): Promise<FileFacts> {
    using limit = timeLimit(clock, runMs, signal);
    if (limit.signal.aborted) return {};
    const child = command(requestFor(file)).spawn();
    const sending = send(child.stdin, file instanceof Uint8Array ? file : new Uint8Array());
    const over = new AbortController();
    const kill = () => {
      try {
        child.kill("SIGKILL");
      } catch {
        // It has ended meanwhile.
      }
    };
    limit.signal.addEventListener("abort", kill, { once: true });
    const watching = watch(child.pid, { signal: over.signal, exceeded: kill });
    try {
      const { success, stdout } = await child.output();
      return success ? readFacts(new TextDecoder().decode(stdout)) : {};
    } finally {
      limit.signal.removeEventListener("abort", kill);
      over.abort();
      await Promise.all([watching, sending]);
    }
  }

  /** Watches the memory of the process, until it is exceeded or the signal aborts. */
  async function watch(
    pid: number,
    { signal, exceeded }: { signal: AbortSignal; exceeded: () => void },
  ): Promise<void> {
    while (Deno.build.os === "linux" && !signal.aborted) {
      const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
      const kilobytes = Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0);
      if (signal.aborted) break;
      if (kilobytes * 1024 > memoryBytes) return exceeded();
      await sleep(clock, WATCH_EVERY_MS, signal);
    }
  }

  return async (file, { signal }) => {
    if (!(file instanceof Uint8Array) && !hasFacts(file)) return {};
    using limit = timeLimit(clock, FACTS_WITHIN_MS, signal);
    try {
      return await turns.add(() => inOwnProcess(file, limit.signal));
    } catch {
      return {};
    }
  };
}

/** Whether such a file is worth a look. */
function hasFacts({ kind, mimetype, size }: UntrustedFile): boolean {
  return kind !== "document" || (mimetype === "application/pdf" && size <= PDF_BYTES);
}

/** Bytes follow on standard input. */
function requestFor(file: UntrustedFile | Uint8Array): string {
  if (file instanceof Uint8Array) return "{}";
  const { path, size, mimetype, kind } = file;
  return JSON.stringify({ path, size, mimetype, kind });
}

/** Never rejects: the process may have ended before it has read them. */
async function send(to: WritableStream<Uint8Array<ArrayBuffer>>, bytes: Uint8Array): Promise<void> {
  const writer = to.getWriter();
  try {
    await writer.write(new Uint8Array(bytes));
    await writer.close();
  } catch {
    await writer.abort().catch(() => {});
  }
}

/** What the executable may start: on Linux only itself, by this name (`scripts/compile.ts`). */
const ITSELF = Deno.build.standalone && Deno.build.os === "linux" ? "/proc/self/exe" : Deno.execPath();

/** This program again, in another role: the executable where there is one, else the source with Deno. */
function command(request: string): Deno.Command {
  const env: Record<string, string> = { DENO_V8_FLAGS: `--max-old-space-size=${HEAP_MB}` };
  for (const name of ENVIRONMENT) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return new Deno.Command(ITSELF, {
    args: [...(Deno.build.standalone ? [] : fromSource()), INSPECT, request],
    clearEnv: true,
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  });
}

/** It may read, and nothing else: no network, no writing. */
function fromSource(): string[] {
  const main = fileURLToPath(new URL("../../main.ts", import.meta.url));
  return ["run", "--quiet", "--no-prompt", "--no-check", "--cached-only", "--allow-read", "--allow-env", main];
}

/** What the process printed (`file_facts.ts`). Throws when it is anything else. */
function readFacts(text: string): FileFacts {
  const { jpegThumbnail, waveform, ...facts } = JSON.parse(text);
  return {
    ...facts,
    ...(jpegThumbnail ? { jpegThumbnail: Uint8Array.fromBase64(jpegThumbnail) } : {}),
    ...(waveform ? { waveform: Uint8Array.fromBase64(waveform) } : {}),
  };
}
