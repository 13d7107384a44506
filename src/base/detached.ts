/** Fire-and-forget work: its failure goes to the log, and nowhere else. */

/** Resolves when the work has ended; `failed` logs the failure. */
export async function detached(work: Promise<unknown>, failed: (fields: { error: string }) => void): Promise<void> {
  try {
    await work;
  } catch (error) {
    failed({ error: errorName(error) });
  }
}

/** Only the error's name: a library's message may hold what must not be logged (promise 6). */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}
