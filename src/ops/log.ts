/**
 * The log: pino to stderr, readable on a terminal, otherwise JSON. Callers do not pass secrets (promise 6). The
 * redaction below is the second line of defence, and `quietConsole` suppresses what libraries print directly.
 */
import process from "node:process";
import pino from "pino";
import type { LogLevel } from "../settings.ts";
import type { Log } from "../runtime.ts";

const STDERR = 2;
/** Most bytes of entries that wait until they can be written. */
const MOST_UNWRITTEN = 64 * 1024;

/** Fields that hold secrets or people's words, wherever they turn up in a logged object; in lower case. */
const SECRET_FIELDS = new Set([
  "apikey",
  "x-api-key",
  "authorization",
  "cookie",
  "idempotency-key",
  "secret",
  "secretkey",
  "password",
  "qr",
  "pairingcode",
  "creds",
  "keys",
  "advsecretkey",
  "privkey",
  "text",
  "caption",
  "body",
]);
/** Fields nested deeper than this are not logged. */
const DEEPEST = 5;

/** Returns the fields with secrets redacted. Not by pino's own wildcard paths, which cost 50 µs per entry. */
function redact(fields: object, depth = 1): Record<string, unknown> {
  const clean: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    clean[name] = SECRET_FIELDS.has(name.toLowerCase()) ? "[redacted]" : redactValue(value, depth);
  }
  return clean;
}

/** A terminal would obey them, or show what follows in another order; a stack has lines of its own. */
const CONTROLS = /[^\P{Cc}\n\t]|\p{Cf}/gu;

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value === "string") return value.replace(CONTROLS, "\uFFFD");
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  // Libraries attach what they were working on to their errors.
  if (value instanceof Error) return redact({ ...pino.stdSerializers.err(value) }, depth + 1);
  if (depth > DEEPEST || ArrayBuffer.isView(value)) return "[left out]";
  if (Array.isArray(value)) return value.map((item) => redactValue(item, depth + 1));
  return redact(value, depth + 1);
}

/** Opens the log of a process that an operator runs: readable text if stderr is a terminal. */
export async function openLog(level: LogLevel): Promise<Log> {
  return makeLog(level, Deno.stderr.isTerminal() ? { destination: await terminal() } : {});
}

/** Makes a log as JSON at the given level, to stderr by default. */
export function makeLog(
  level: LogLevel,
  { destination = stderr() }: { destination?: pino.DestinationStream } = {},
): Log {
  // `redact` has serialised them already.
  const serializers = { err: (error: unknown) => error };
  const recent = new Recent();
  const log = pino({ level, base: null, formatters: { log: redact }, serializers }, {
    write(entry) {
      recent.add(entry);
      destination.write(entry);
    },
  });
  kept.set(log, recent);
  return log;
}

/** How many of the newest entries of a process are kept in memory, and of warnings and errors among them. */
const KEPT = 300;
const KEPT_GRAVE = 100;
/** A longer entry is not kept. */
const LONGEST_KEPT = 8 * 1024;
/** As each entry of a warning or an error begins. */
const GRAVE = /^\{"level":[456]0,/;

/** The newest entries, as they were logged. Requests, of which there are many, do not push out warnings and errors. */
class Recent {
  readonly #all: string[] = [];
  readonly #grave: string[] = [];

  add(entry: string): void {
    if (entry.length > LONGEST_KEPT) return;
    const [kept, most] = GRAVE.test(entry) ? [this.#grave, KEPT_GRAVE] : [this.#all, KEPT];
    if (kept.push(entry) > most) kept.shift();
  }

  entries(): string[] {
    return [...this.#grave, ...this.#all];
  }
}

const kept = new WeakMap<Log, Recent>();

/** Returns the newest entries of a log that `makeLog` made, each as JSON, in no order; secrets are redacted. */
export function recentEntries(log: Log): string[] {
  return kept.get(log)?.entries() ?? [];
}

/**
 * Writes synchronously, so that the last entries before a crash are written. On a full disk or a closed terminal
 * entries are lost, but the process goes on.
 */
function stderr(): pino.DestinationStream {
  const destination = pino.destination({ dest: STDERR, sync: true, maxLength: MOST_UNWRITTEN });
  destination.on("error", () => {});
  // No more can wait, and none would try again.
  destination.on("drop", () => {
    try {
      destination.flushSync();
    } catch {
      // It cannot be written yet.
    }
  });
  return destination;
}

/** In this thread: pino's own transports need worker threads, which an executable does not carry. */
async function terminal(): Promise<pino.DestinationStream> {
  // CommonJS: in the executable's bundle only its default is there.
  const { default: { prettyFactory } } = await import("pino-pretty");
  const pretty = prettyFactory({ colorize: !Deno.noColor, translateTime: "SYS:HH:MM:ss.l", ignore: "pid" });
  const destination = stderr();
  return { write: (entry) => destination.write(pretty(entry)) };
}

const METHODS = ["debug", "dir", "error", "info", "log", "table", "trace", "warn"] as const;

/**
 * Silences `console` and the runtime's warnings for the whole process; returns what undoes it. Only that something was
 * printed is logged, at debug: libsignal prints whole session records with their private keys ("Closing session:").
 */
export function quietConsole(log: Log): () => void {
  const originals = METHODS.map((method) => console[method]);
  for (const method of METHODS) {
    console[method] = (...printed: unknown[]) =>
      log.debug({ method, values: printed.length }, "a library printed something, which is left out");
  }
  const printers = process.listeners("warning");
  const warned = ({ name, code }: Error & { code?: string }) => log.debug({ name, code }, "a library was warned");
  process.removeAllListeners("warning").on("warning", warned);
  return () => {
    METHODS.forEach((method, i) => console[method] = originals[i]!);
    process.off("warning", warned);
    for (const print of printers) process.on("warning", print);
  };
}
