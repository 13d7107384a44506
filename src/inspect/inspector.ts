/**
 * Reads each untrusted file in a process of its own, and kills it if it takes too long or too much memory: the file is
 * then sent without these facts. Histories and settings of an account's other devices are read in the same way. A
 * process and not a worker thread, because nothing stops a thread that runs in a loop: `Worker.terminate()` returns, and
 * the loop goes on (docs/decisions/0015).
 */
import { setPriority } from "node:os";
import type { Clock } from "../runtime.ts";
import { timeLimit } from "../base/within.ts";
import { FairSemaphore } from "../base/fair_semaphore.ts";
import { itself } from "../base/itself.ts";
import {
  type FileFacts,
  type FoundSetting,
  INSPECT,
  type InspectRequest,
  type OutsideRequest,
  OVER_MEMORY,
  type ReadHistory,
  type UntrustedFile,
} from "./inspection.ts";

/** Larger PDFs are sent without a page count. */
const PDF_BYTES = 8 * 1024 * 1024;
/** For one file, the start of the process included; an honest file takes tenths of a second. */
const RUN_MS = 3_000;
/** The wait for a turn included: behind a flood of slow files a message leaves without its preview. */
const FACTS_WITHIN_MS = 8_000;
const AT_ONCE = 2;
/** Characters of an answer, which is parsed on the main thread. */
const LONGEST_ANSWER = 6 * 1024 ** 2;
/** For the whole process, of which the runtime takes about 60 MB. */
const MEMORY_BYTES = 160 * 1024 ** 2;
const HEAP_MB = 80;
/** Variables that the process needs to find its code; none of the gateway's settings and secrets. */
const ENVIRONMENT = ["HOME", "PATH", "DENO_DIR", "XDG_CACHE_HOME", "USERPROFILE", "LOCALAPPDATA", "SYSTEMROOT"];

/**
 * Resolves to the facts of a file, or of an image given as bytes; to none if it cannot be read within the bounds; to
 * null if it was given up for lack of time, or the signal aborts: another attempt may work. Never rejects.
 */
export type Inspect = (file: UntrustedFile | Uint8Array, options: { signal: AbortSignal }) => Promise<FileFacts | null>;

/** Accounts take turns, over all of their lines. `bounds`: tests set smaller ones. */
export function makeInspector(
  { clock, bounds: { runMs, memoryBytes } = { runMs: RUN_MS, memoryBytes: MEMORY_BYTES } }: {
    clock: Clock;
    bounds?: { runMs: number; memoryBytes: number };
  },
): (accountId: string) => Inspect {
  const turns = new FairSemaphore({ inAll: AT_ONCE, each: AT_ONCE });

  async function inOwnProcess(file: UntrustedFile | Uint8Array, signal: AbortSignal): Promise<FileFacts | null> {
    using limit = timeLimit(clock, runMs, signal);
    const [onDisk, bytes] = file instanceof Uint8Array ? [null, [file]] : [described(file), []];
    const text = await ask({ file: onDisk, memoryBytes }, bytes, { signal: limit.signal, nice: 0 });
    if (text === null) return limit.signal.aborted ? null : {};
    return readFacts(text);
  }

  return (tenant) => async (file, { signal }) => {
    if (!(file instanceof Uint8Array) && !hasFacts(file)) return {};
    using limit = timeLimit(clock, FACTS_WITHIN_MS, signal);
    try {
      return await turns.run({ tenant }, () => inOwnProcess(file, limit.signal));
    } catch {
      return {};
    }
  };
}

/** A part of the history or a file of settings, which nobody waits for: messages come first. */
const OUTSIDE_NICE = 5;
const OUTSIDE_RUN_MS = 20_000;
/** Turns are waited for this long: an account that floods waits for itself alone. */
const OUTSIDE_WITHIN_MS = 120_000;

/** As they came: put together they would be in memory twice. */
type Bytes = readonly Uint8Array[];

/** Reads what another device of a line's account made. Rejects if it can't be read within the bounds. */
export interface ReadOutside {
  (request: { read: "history" }, bytes: Bytes): Promise<ReadHistory>;
  (request: Extract<OutsideRequest, { read: "settings" }>, bytes: Bytes): Promise<FoundSetting[]>;
}

/** Accounts take turns, with one process each. */
export function makeReadOutside(
  { clock, bounds: { runMs, memoryBytes } = { runMs: OUTSIDE_RUN_MS, memoryBytes: MEMORY_BYTES } }: {
    clock: Clock;
    bounds?: { runMs: number; memoryBytes: number };
  },
): (accountId: string) => ReadOutside {
  const turns = new FairSemaphore({ inAll: AT_ONCE, each: 1 });
  return (tenant) => async (outside: OutsideRequest, bytes: Bytes) => {
    using turn = timeLimit(clock, OUTSIDE_WITHIN_MS);
    return await turns.run({ tenant, signal: turn.signal }, async () => {
      using limit = timeLimit(clock, runMs);
      const request = { file: null, outside, memoryBytes };
      const text = await ask(request, bytes, { signal: limit.signal, nice: OUTSIDE_NICE });
      if (text === null) throw new RangeError("it can't be read within the bounds");
      return JSON.parse(text);
    });
  };
}

/** Resolves to what a process of its own prints; null if it fails or the signal aborts, which kills it. */
async function ask(
  request: InspectRequest,
  bytes: Bytes,
  { signal, nice }: { signal: AbortSignal; nice: number },
): Promise<string | null> {
  if (signal.aborted) return null;
  const child = command(JSON.stringify(request)).spawn();
  if (nice > 0) yieldToOthers(child, nice);
  const sending = send(child.stdin, bytes);
  const kill = () => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  };
  signal.addEventListener("abort", kill, { once: true });
  try {
    const text = await outputOf(child.stdout, { exceeded: kill });
    const { success } = await child.status;
    return success ? text : null;
  } finally {
    signal.removeEventListener("abort", kill);
    await sending;
  }
}

/** Whether such a file may have facts. */
function hasFacts({ kind, mimetype, size }: UntrustedFile): boolean {
  return kind !== "document" || (mimetype === "application/pdf" && size <= PDF_BYTES);
}

/** Only what the process needs: arguments can be seen by other users of the machine. */
function described({ path, size, mimetype, kind }: UntrustedFile): UntrustedFile {
  return { path, size, mimetype, kind };
}

function yieldToOthers({ pid }: Deno.ChildProcess, nice: number): void {
  try {
    setPriority(pid, nice);
  } catch {
    // It has ended meanwhile, or the gateway itself is as low.
  }
}

const CHUNK_BYTES = 256 * 1024;

/** Never rejects: the process may have ended before it has read them. */
async function send(to: WritableStream<Uint8Array<ArrayBuffer>>, bytes: Bytes): Promise<void> {
  const writer = to.getWriter();
  try {
    // In chunks, because each is copied on this thread.
    for (const part of bytes) {
      for (let at = 0; at < part.length; at += CHUNK_BYTES) await writer.write(part.slice(at, at + CHUNK_BYTES));
    }
    await writer.close();
  } catch {
    await writer.abort().catch(() => {});
  }
}

/** Resolves to what the process prints. Calls `exceeded` when it says that it has taken too much memory. */
async function outputOf(
  stdout: ReadableStream<Uint8Array<ArrayBuffer>>,
  { exceeded }: { exceeded: () => void },
): Promise<string> {
  let text = "";
  for await (const part of stdout.pipeThrough(new TextDecoderStream())) {
    text += part;
    // The sign may also come in the midst of an answer, which is then no JSON.
    if (part.includes(OVER_MEMORY) || text.length > LONGEST_ANSWER) exceeded();
  }
  return text;
}

/** It may read, and nothing else: no network, no writing. */
function command(request: string): Deno.Command {
  const env: Record<string, string> = { DENO_V8_FLAGS: `--max-old-space-size=${HEAP_MB}` };
  for (const name of ENVIRONMENT) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return itself([INSPECT, request], {
    permissions: ["--allow-read", "--allow-env"],
    clearEnv: true,
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  });
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
