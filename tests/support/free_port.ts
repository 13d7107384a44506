/** Ports for servers that have to be told theirs, and come back to it when they are restarted. */

import { systemRandom } from "../../src/runtime.ts";

/** Below those that Linux gives to whoever names none: nobody gets one of these while its server is away. */
const [FIRST, LAST] = [12_000, 32_000];

/** A port of loopback on which nobody listens. */
export function freePort(): number {
  for (;;) {
    const port = systemRandom.between(FIRST, LAST);
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

/** Whether anybody takes connections on that port of loopback. */
export async function listens(port: number): Promise<boolean> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => null);
  connection?.close();
  return connection !== null;
}

/** Whether anybody answers HTTP there, whatever the answer. */
export async function answers(url: string): Promise<boolean> {
  return await fetch(url).then(async (answer) => {
    await answer.body?.cancel();
    return true;
  }, () => false);
}
