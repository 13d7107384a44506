/** Waiting for the operator: SIGINT or SIGTERM, or the end of the terminal. */

/** Resolves at the first SIGINT, SIGTERM or SIGHUP; a second one of the first two ends the process at once. */
export function untilAsked(): Promise<void> {
  const hangsUp = heedsHangup();
  return new Promise((resolve) => {
    let asked = false;
    const ask = () => {
      if (asked) Deno.exit(130);
      asked = true;
      resolve();
    };
    Deno.addSignalListener("SIGINT", ask);
    Deno.addSignalListener("SIGTERM", ask);
    // Heard in any case: with a listener of its own for all three, the runtime ends a process that ignored this one.
    Deno.addSignalListener("SIGHUP", () => {
      // It comes from the terminal, and from its shell too.
      if (hangsUp) resolve();
    });
  });
}

/** False where whoever started the process has it ignore the signal, as `nohup` does. */
function heedsHangup(): boolean {
  try {
    const [, ignored] = /^SigIgn:\s+([0-9a-f]+)$/m.exec(Deno.readTextFileSync("/proc/self/status"))!;
    return (BigInt(`0x${ignored}`) & 1n) === 0n;
  } catch {
    // Other systems do not say, and the executable may not ask; `nohup` takes the terminal away from both.
    return Deno.stdout.isTerminal() || Deno.stderr.isTerminal();
  }
}
