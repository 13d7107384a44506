/** What the library's errors carry: they are Booms, read here without the package that makes them. */

/** How the library says that it waited in vain. */
export const TIMED_OUT = 408;

/** The code with which the network answered a query; null when that is not what failed. */
export function queryError(error: unknown): number | null {
  return error instanceof Error && "data" in error && typeof error.data === "number" ? error.data : null;
}

/** The status that the library gives the error; null when it has none. */
export function statusOf(error: unknown): number | null {
  const output = error instanceof Error && "output" in error ? error.output : null;
  if (typeof output !== "object" || output === null || !("statusCode" in output)) return null;
  return typeof output.statusCode === "number" ? output.statusCode : null;
}
