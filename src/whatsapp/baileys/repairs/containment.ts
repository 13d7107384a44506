/**
 * What Baileys and libsignal do to the whole process, known by where in the call stack it comes
 * from: they print whole session records, private keys included (promise 6), and leave rejections that nobody catches.
 */
import type { Log } from "../../../runtime.ts";

const METHODS = ["log", "info", "warn", "error", "debug"] as const;
/** Frames of the call stack that belong to the Signal library, or to the code around it in Baileys. */
const SOURCE = /[\\/](libsignal|@whiskeysockets[\\/+]baileys)[\\/@]/;
/** Classes whose instances hold keys. */
const SECRET = /^(SessionEntry|SessionRecord)$/;

const silenced = new WeakSet<object>();
let contained = false;

/**
 * Wraps the console's methods, once: what the Signal library says is dropped by where the call comes from and by what is in
 * it, so a new sentence of its says nothing too. Everybody else's output passes.
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
  // Line 3 is the caller of the console: Error, this function and the wrapper stand before it.
  return SOURCE.test(new Error().stack?.split("\n")[3] ?? "");
}

/**
 * Some of Baileys' listeners are async functions whose rejection nobody catches, for instance a query under way when its
 * socket drops. In Deno that would end the process, and every other line with it (promise 5): once a process, such
 * rejections become a line of the log. Everybody else's pass.
 */
export function containStrayRejections(log: Log): void {
  if (contained) return;
  contained = true;
  globalThis.addEventListener("unhandledrejection", (event) => {
    const { reason } = event;
    if (!(reason instanceof Error) || !SOURCE.test(reason.stack ?? "")) return;
    event.preventDefault();
    log.debug({ error: reason.name }, "the messaging library left a rejection behind");
  });
}
