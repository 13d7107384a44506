/**
 * What HTTP and panel ask of running lines. The supervisor of this process answers (`supervisor.ts`), or, on a shared
 * store, the process that holds the line's lease (`remote.ts`).
 */
import type { Change } from "../store/kv.ts";
import type { Connection, ConnectionHealth } from "../whatsapp/connection.ts";
import type { Outgoing, SendOutcome } from "../whatsapp/outgoing.ts";

/** Prefix of the bell topics that wake a line; they end in the line's id. */
export const LINE_TOPIC = "line/";

/** What can be asked of a connection that may belong to another process. */
export type LiveConnection = Pick<Connection, "checkNumber" | "groups" | "contacts" | "chats">;

export interface Vitals {
  /** Null if the line has no connection. */
  connection: ConnectionHealth | null;
  /** When the line logged in, Unix ms; null if it is not logged in. */
  connectedSince: number | null;
}

export interface LiveLines {
  /** Adds to the commit that creates a line what makes a process take the line up. */
  offer(change: Change, lineId: string): void;
  /** Announces a new line or a new wanted state. Call it after the commit. */
  reconcile(line: { id: string; accountId: string }): void;
  /** Announces that a message of the line was accepted, changed or cancelled. Call it after the commit. */
  queueChanged(lineId: string): void;
  /** Calls `look` after each change of the line, including its removal; returns the function that unsubscribes. */
  watch(lineId: string, look: () => void): () => void;
  /** Like `watch`, for every line. */
  watchAll(look: () => void): () => void;
  /**
   * Returns the connection; null if the line is certainly not logged in. Calls reject with
   * NetworkRefusal, NetworkTimeout.
   */
  connection(lineId: string): LiveConnection | null;
  /** Returns the connection on which linking continues; null if there is certainly none. */
  present(lineId: string): Pick<Connection, "signPasskey" | "confirmPasskey"> | null;
  /**
   * Sends one message at once, bypassing the queue. Rejects with NetworkTimeout if the line's process does not answer.
   */
  deliver(lineId: string, message: Outgoing): Promise<SendOutcome>;
  /** Returns the line's vitals. Rejects with NetworkTimeout if the line's process does not answer. */
  vitals(lineId: string): Promise<Vitals>;
}
