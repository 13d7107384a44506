/**
 * Keeps the Signal library off the console: it prints whole session records, private keys included (promise 6).
 * What it says is dropped by where the call comes from and by what is in it, so a new sentence of its says nothing too.
 */
const METHODS = ["log", "info", "warn", "error", "debug"] as const;
/** Frames of the call stack that belong to the Signal library, or to the code around it in Baileys. */
const SOURCE = /[\\/](libsignal|@whiskeysockets[\\/+]baileys)[\\/@]/;
/** Classes whose instances hold keys. */
const SECRET = /^(SessionEntry|SessionRecord)$/;

const silenced = new WeakSet<object>();

/** Wraps the console's methods, once; everybody else's output passes. */
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
