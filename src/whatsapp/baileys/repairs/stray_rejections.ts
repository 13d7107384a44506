/**
 * Some of Baileys' listeners are async functions whose rejection nobody catches, for instance a query under way when
 * its socket drops. In Deno that would end the process, and every other line with it (promise 5).
 */
import type { Log } from "../../../runtime.ts";

const SOURCE = /[\\/](libsignal|@whiskeysockets[\\/+]baileys)[\\/@]/;
let contained = false;

/** Turns rejections that come out of the library into a log line, once a process. Everybody else's pass. */
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
