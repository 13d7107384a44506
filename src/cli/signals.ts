/** Waiting for the operator: SIGINT or SIGTERM. */

/** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. */
export function untilAsked(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    const ask = () => {
      if (asked) Deno.exit(130);
      asked = true;
      resolve();
    };
    Deno.addSignalListener("SIGINT", ask);
    Deno.addSignalListener("SIGTERM", ask);
  });
}
