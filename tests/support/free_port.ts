/** Ports for servers that have to be told theirs, and come back to it when they are restarted. */

import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemRandom } from "../../src/runtime.ts";

/** Below those that Linux gives to whoever names none: nobody gets one of these while its server is away. */
const [FIRST, LAST] = [12_000, 32_000];

/** Has a folder for each port that was given out: its server listens only later, and may be away for a while. */
const GIVEN = join(tmpdir(), `paloma-test-ports-${Deno.uid()}`);
/** Longer than any test runs. */
const GIVEN_FOR_MS = 3_600_000;

/** A port of loopback on which nobody listens, and which no other test was given. */
export function freePort(): number {
  for (;;) {
    const port = systemRandom.between(FIRST, LAST);
    if (!take(port)) continue;
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

function take(port: number): boolean {
  const folder = join(GIVEN, String(port));
  Deno.mkdirSync(GIVEN, { recursive: true });
  try {
    Deno.mkdirSync(folder);
    return true;
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    const now = new Date();
    if (now.getTime() - Deno.statSync(folder).mtime!.getTime() < GIVEN_FOR_MS) return false;
    Deno.utimeSync(folder, now, now);
    return true;
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
