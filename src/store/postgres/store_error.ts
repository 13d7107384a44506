/** Maps errors of PostgreSQL and its client to the port's `StoreError`, by SQLSTATE. */
// @ts-types="@types/pg"
import pg from "pg";
import { StoreAway, StoreError } from "../kv.ts";

/**
 * The server rolled the transaction back (serialization failure or deadlock): nothing was written, and it can be
 * retried.
 */
const RACES = new Set(["40001", "40P01"]);
/** The statement or a lock took too long, and the server rolled the transaction back. */
const LATE = new Set(["55P03", "57014"]);
/** The server accepts no writes: it is a standby, or set to read-only. */
const READ_ONLY = "25006";
/** Too many connections: of the server, of the role, or of the database. */
const NO_CONNECTIONS = "53300";
/** Message of the client's own error, which has no code. */
const NO_ANSWER = "Query read timeout";
const DISK_FULL = "53100";
/** The connection broke, or the server starts, stops, or was stopped. */
const AWAY = /^(08|57P)/;
/** A counter grew past 64 bits; a key is too long for the index. */
const PAST_LIMITS = new Set(["22003", "54000"]);
/** `add` to a value that is not a counter. */
const CHECK_VIOLATION = "23514";

/** Whether the transaction lost a race and may be retried. */
export function isRace(error: unknown): boolean {
  return error instanceof pg.DatabaseError && RACES.has(error.code ?? "");
}

/** Whether other connections may also lead to a server that is gone or was replaced. */
export function isOfOtherServer(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.code === READ_ONLY;
  return error instanceof Error && error.message === NO_ANSWER;
}

/** Whether the server refused a further connection; nothing has been sent yet. */
export function lacksConnections(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === NO_CONNECTIONS;
}

/**
 * Returns a `StoreError` for a failure of the server or the connection, a TypeError or RangeError for a caller's
 * mistake.
 */
export function storeError(error: unknown): unknown {
  if (error instanceof StoreError || error instanceof TypeError || error instanceof RangeError) return error;
  const text = error instanceof Error ? error.message : String(error);
  const code = error instanceof pg.DatabaseError ? error.code ?? "" : "";
  if (PAST_LIMITS.has(code)) return new RangeError(text);
  if (code === CHECK_VIOLATION) return new TypeError("only a counter can be added to");
  if (RACES.has(code) || LATE.has(code)) {
    return new StoreError("locked", `another process holds rows locked: ${text}`, { cause: error });
  }
  if (code === DISK_FULL) return new StoreError("full", "there is no space left for the store", { cause: error });
  const message = `PostgreSQL cannot be used: ${text}`;
  // Errors without a code come from the client, which has lost the server or not found it.
  if (code === "" || AWAY.test(code) || code === NO_CONNECTIONS) return new StoreAway(message, { cause: error });
  return new StoreError("unavailable", message, { cause: error });
}

/** Settles as `run` does, with its failure translated. */
export async function guarded<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw storeError(error);
  }
}
