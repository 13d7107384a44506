/**
 * Contains what Baileys and libsignal do to the whole process: they print entire session records, private keys included
 * (promise 6), and leave rejections unhandled. Their calls are recognised by the call stack.
 */
import type { SocketConfig } from "@whiskeysockets/baileys";
import type { Log } from "../../../runtime.ts";
import { statusOf } from "../stanza.ts";

const METHODS = ["log", "info", "warn", "error", "debug"] as const;
/** Call stack frames of the Signal library, or of Baileys around it. */
const SOURCE = /[\\/](libsignal|@whiskeysockets[\\/+]baileys)[\\/@]/;
/** Names of the classes whose instances hold keys. */
const SECRET = /^(SessionEntry|SessionRecord)$/;

const silenced = new WeakSet<object>();
let contained = false;

/**
 * Wraps the console's methods, once. Output of the Signal library is dropped, judging by where the call comes from and
 * by the arguments, so that a new message in the library stays silent too. All other output passes.
 */
export function silenceLibsignal(console: Console = globalThis.console): void {
  if (silenced.has(console)) return;
  silenced.add(console);
  for (const method of METHODS) {
    const print = console[method].bind(console);
    console[method] = (...args: unknown[]) => {
      if (!isSecret(args) && !comesFromLibsignal()) print(...args);
    };
  }
}

function isSecret(args: unknown[]): boolean {
  return args.some((arg) => typeof arg === "object" && arg !== null && SECRET.test(arg.constructor?.name ?? ""));
}

function comesFromLibsignal(): boolean {
  // Line 3 of the stack is the caller of the console; Error, this function and the wrapper come first.
  return SOURCE.test(new Error().stack?.split("\n")[3] ?? "");
}

/**
 * Logs unhandled rejections of Baileys, once per process. Some of its listeners are async functions that nobody awaits,
 * such as a query in progress when its socket drops. In Deno such a rejection would end the process, and every other
 * line with it (promise 5). All other rejections pass.
 */
export function containRejections(log: Log): void {
  if (contained) return;
  contained = true;
  globalThis.addEventListener("unhandledrejection", (event) => {
    const { reason } = event;
    if (!(reason instanceof Error) || !SOURCE.test(reason.stack ?? "")) return;
    event.preventDefault();
    log.debug({ error: reason.name }, "the messaging library left a rejection unhandled");
  });
}

type BaileysLogger = SocketConfig["logger"];

/** The library's constant sentences that say something about the line, and the level at which they are logged. */
const SENTENCES: Readonly<Record<string, "warn" | "debug">> = {
  "timed out waiting for message": "warn",
  "stream errored out": "debug",
  "error in validating connection": "debug",
  "error in sending keep alive": "debug",
  "failed to decrypt message": "warn",
  "transaction failed, rolling back": "debug",
  "failed to run digest after login": "warn",
  "failed to send initial passive iq": "warn",
  "Failed to check/upload pre-keys during initialization": "warn",
  "Failed to upload pre-keys to server": "warn",
  "Failed to send retry": "warn",
  "error in handling message": "warn",
  "error in sending message again": "warn",
  "Failed to encrypt for recipient": "warn",
  "failed to store user device lists": "warn",
  "error 463: account restricted or missing tctoken for contact": "warn",
  "received error in ack": "warn",
  "Connection closed, skipping retry": "debug",
};

/**
 * Returns a logger for the library that writes only what is known to be harmless to `log`. The library puts handshakes,
 * session records, nodes and texts into its log objects, so only the sentences and fields listed here pass (promise 6).
 */
export function quietLogger(log: Log): BaileysLogger {
  const say = (subject: unknown, sentence?: string) => {
    const level = SENTENCES[typeof subject === "string" ? subject : sentence ?? ""];
    if (level) log[level](harmless(subject), typeof subject === "string" ? subject : sentence);
  };
  const drop = () => {};
  const logger: BaileysLogger = {
    // At a lower level, the library would render nodes as text that is then dropped.
    level: "warn",
    child: () => logger,
    trace: drop,
    debug: drop,
    info: drop,
    warn: say,
    error: say,
  };
  return logger;
}

/** Picks the error's name and code, and the message's id; never a text, a node or an error message. */
function harmless(subject: unknown): Record<string, string | number> {
  if (typeof subject !== "object" || subject === null) return {};
  const { err, error, msgId }: { err?: unknown; error?: unknown; msgId?: unknown } = subject;
  const cause = err ?? error;
  const fields: Record<string, string | number> = {};
  if (typeof msgId === "string") fields.networkId = msgId;
  if (cause instanceof Error) {
    fields.error = cause.name;
    const code = statusOf(cause);
    if (code !== null) fields.code = code;
  }
  return fields;
}
