/**
 * Contains what Baileys and libsignal do to the whole process: they print entire session records, private keys included
 * (promise 6), and leave rejections unhandled. Their calls are recognised by the call stack.
 */
import type { Log } from "../../../runtime.ts";

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
export function containStrayRejections(log: Log): void {
  if (contained) return;
  contained = true;
  globalThis.addEventListener("unhandledrejection", (event) => {
    const { reason } = event;
    if (!(reason instanceof Error) || !SOURCE.test(reason.stack ?? "")) return;
    event.preventDefault();
    log.debug({ error: reason.name }, "the messaging library left a rejection unhandled");
  });
}
