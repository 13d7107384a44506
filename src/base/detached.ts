/** Fire-and-forget work, whose failure is only logged. */

/** Resolves when the work has ended; `failed` is the log message for a failure. */
export async function detached(work: Promise<unknown>, failed: (fields: { error: string }) => void): Promise<void> {
  try {
    await work;
  } catch (error) {
    failed({ error: errorName(error) });
  }
}

/** Returns only the error's name: a library's message may contain what must not be logged (promise 6). */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}
