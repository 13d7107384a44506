/**
 * What HTTP and panel ask of lines that somebody keeps: the supervisor of this process (`supervisor.ts`), or, on a store
 * that many share, whoever holds the line's lease (`remote.ts`).
 */
import type { Change } from "../store/kv.ts";
import type { Connection, ConnectionHealth } from "../whatsapp/connection.ts";
import type { Outgoing, SendOutcome } from "../whatsapp/outgoing.ts";

/** What can be asked of a connection that may be another process's. */
export type LiveConnection = Pick<Connection, "checkNumber" | "groups" | "contacts" | "chats">;

export interface Vitals {
  /** Null while there is no connection. */
  connection: ConnectionHealth | null;
  /** When the line logged in, Unix ms; null while it is not. */
  connectedSince: number | null;
}

export interface LiveLines {
  /** Adds to the commit that makes a line what lets it be taken up. */
  offer(change: Change, lineId: string): void;
  /** The owner wants something else, or a new line. Call it after the commit. */
  reconcile(line: { id: string; accountId: string }): void;
  /** A message was accepted for the line, or taken back. Call it after the commit. */
  queueChanged(lineId: string): void;
  /** Calls `look` after each change of the line, also its end; returns the function that unsubscribes. */
  watch(lineId: string, look: () => void): () => void;
  /** As `watch`, of every line. */
  watchAll(look: () => void): () => void;
  /** Null: it is surely not logged in. The calls reject with NetworkRefusal, NetworkTimeout. */
  connection(lineId: string): LiveConnection | null;
  /** The connection that a link is completed on; null: there is surely none. */
  present(lineId: string): Pick<Connection, "signPasskey" | "confirmPasskey"> | null;
  /** Lets one message leave at once, beside the queue. Rejects with NetworkTimeout where nobody answers. */
  deliver(lineId: string, message: Outgoing): Promise<SendOutcome>;
  /** Rejects with NetworkTimeout where nobody answers. */
  vitals(lineId: string): Promise<Vitals>;
}
