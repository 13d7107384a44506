/** Waits for SIGINT, SIGTERM, or the hang-up of the terminal. */

/** Exit code, as a shell gives it to what SIGINT has ended. */
const INTERRUPTED = 130;

/** Resolves at the first SIGINT, SIGTERM or SIGHUP; a second SIGINT or SIGTERM ends the process at once. */
export function untilAsked(): Promise<void> {
  const hangsUp = heedsHangup();
  return new Promise((resolve) => {
    let asked = false;
    const ask = () => {
      if (asked) Deno.exit(INTERRUPTED);
      asked = true;
      resolve();
    };
    Deno.addSignalListener("SIGINT", ask);
    Deno.addSignalListener("SIGTERM", ask);
    // Always listened for: with its own listeners, the runtime would end a process that was started to ignore SIGHUP.
    Deno.addSignalListener("SIGHUP", () => {
      // No second one ends the process: both the terminal and its shell send SIGHUP.
      if (hangsUp) resolve();
    });
  });
}

/** Exits when asked to, which removes temporary files. A process that the signal itself ends leaves them. */
export async function exitWhenAsked(): Promise<never> {
  await untilAsked();
  Deno.exit(INTERRUPTED);
}

/** Whether SIGHUP should end the process; false if it was started to ignore the signal, as by `nohup`. */
function heedsHangup(): boolean {
  try {
    const [, ignored] = /^SigIgn:\s+([0-9a-f]+)$/m.exec(Deno.readTextFileSync("/proc/self/status"))!;
    return (BigInt(`0x${ignored}`) & 1n) === 0n;
  } catch {
    // Other systems have no such file, and the executable may not read it. `nohup` redirects both streams.
    return Deno.stdout.isTerminal() || Deno.stderr.isTerminal();
  }
}
