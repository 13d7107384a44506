/**
 * The log: pino to stderr, readable on a terminal, JSON otherwise. Nobody hands it secrets (promise 6); the redaction
 * below is the second belt, and `quietConsole` keeps out what libraries print past it.
 */
import pino from "pino";
import pretty from "pino-pretty";
import type { LogLevel } from "./config.ts";
import type { Log } from "./runtime.ts";

const STDERR = 2;

/** Names of fields that hold secrets or people's words, wherever they turn up in a logged object. */
const SECRET_FIELDS = [
  "apiKey",
  "secret",
  "secretKey",
  "password",
  "authorization",
  "cookie",
  "qr",
  "pairingCode",
  "code",
  "creds",
  "keys",
  "advSecretKey",
  "privKey",
  "private",
  "text",
  "caption",
  "body",
  "message.conversation",
  '["x-api-key"]',
  '["idempotency-key"]',
] as const;

/** Paths for pino: each field at the top, and one and two levels down. */
const REDACTED = ["", "*.", "*.*."].flatMap((above) =>
  SECRET_FIELDS.map((field) => field.startsWith("[") ? above.replace(/\.$/, "") + field : above + field)
);

/** Where the log goes; tests give a stream of their own. */
export interface LogOptions {
  destination?: pino.DestinationStream;
}

/** The log at the given level. Written at once, so that the last words before a crash are there. */
export function makeLog(level: LogLevel, options: LogOptions = {}): Log {
  const destination = options.destination ?? (Deno.stderr.isTerminal() ? terminal() : pino.destination(STDERR));
  return pino({ level, base: null, redact: { paths: REDACTED, censor: "[redacted]" } }, destination);
}

/** In this thread: pino's own transports need worker threads, which an executable does not carry. */
function terminal(): pino.DestinationStream {
  return pretty({ destination: STDERR, sync: true, colorize: true, translateTime: "SYS:HH:MM:ss.l", ignore: "pid" });
}

const METHODS = ["debug", "dir", "error", "info", "log", "table", "trace", "warn"] as const;

/**
 * Silences `console` for the whole process; returns what undoes it. Only that something was printed is logged, at
 * debug: libsignal prints whole session records with their private keys ("Closing session:").
 */
export function quietConsole(log: Log): () => void {
  const originals = METHODS.map((method) => console[method]);
  for (const method of METHODS) {
    console[method] = (...printed: unknown[]) =>
      log.debug({ method, values: printed.length }, "a library printed something, which is left out");
  }
  return () => METHODS.forEach((method, i) => console[method] = originals[i]!);
}
