/** Work that nobody waits for: it fails into the log, and nowhere else. */

/** Resolves when the work has ended; `failed` logs the failure. */
export async function detached(work: Promise<unknown>, failed: (fields: { error: string }) => void): Promise<void> {
  try {
    await work;
  } catch (error) {
    failed({ error: errorName(error) });
  }
}

/** The name of the error alone: messages of libraries may hold what no log may (promise 6). */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}
