/** Turns what PostgreSQL and its client throw into the port's `StoreError`, by SQLSTATE. */
// @ts-types="@types/pg"
import pg from "pg";
import { StoreError } from "../kv.ts";

/** The server took the transaction back before the end, and it may simply be tried again: nothing was written. */
const RACES = new Set(["40001", "40P01"]);
/** The statement or a lock took too long, and the server took the transaction back. */
const LATE = new Set(["55P03", "57014"]);
/** The server takes no writes (any more): a standby, or one that its operator has set so. */
const READ_ONLY = "25006";
/** Too many connections: of the server, of the role, or of the database. */
const NO_CONNECTIONS = "53300";
/** Of the client, which gives its errors no code. */
const NO_ANSWER = "Query read timeout";
const DISK_FULL = "53100";
/** A counter grew past 64 bits; a key is too long for the index. */
const PAST_LIMITS = new Set(["22003", "54000"]);
/** `add` to a value that is no counter. */
const CHECK_VIOLATION = "23514";

/** Whether the transaction lost a race, and another try may win it. */
export function isRace(error: unknown): boolean {
  return error instanceof pg.DatabaseError && RACES.has(error.code ?? "");
}

/** Whether the other connections, too, may lead to a server that is gone, or was replaced by another one. */
export function isOfOtherServer(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.code === READ_ONLY;
  return error instanceof Error && error.message === NO_ANSWER;
}

/** Whether the server takes no more connections; nothing was asked of it yet. */
export function lacksConnections(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === NO_CONNECTIONS;
}

/** A `StoreError` for a failure of the server or of the way to it; a mistake of the caller comes as one. */
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
  return new StoreError("unavailable", `PostgreSQL cannot be used: ${text}`, { cause: error });
}
