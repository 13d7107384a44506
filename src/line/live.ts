/**
 * What HTTP and panel ask of running lines, and what wakes those that follow a line. The supervisor of this process
 * answers (`supervisor.ts`), or, on a shared store, the process that holds the line's lease (`remote.ts`).
 */
import { callMembers } from "../cluster/holder.ts";
import type { Bell } from "../store/bell.ts";
import type { Connection, ConnectionHealth } from "../whatsapp/connection.ts";
import type { Outgoing, SendOutcome } from "../whatsapp/outgoing.ts";

/** Prefixes of bell topics, each followed by the line's id: the time has come for which a line's queue waited; … */
export const LINE_TOPIC = "line/";
/** … its row has changed, or is gone. */
export const CHANGED_TOPIC = "changed/";
/** Rings for a new line and a new wanted state; followed by the account's id, `/` and the line's. */
export const WANTED_TOPIC = "wanted/";

/** Announces a new line or a new wanted state. Call it after the commit. */
export function ringWanted(bell: Pick<Bell, "ring">, { id, accountId }: { id: string; accountId: string }): void {
  bell.ring(`${WANTED_TOPIC}${accountId}/${id}`);
  // On a shared store, a new line has no holder yet.
  callMembers(bell);
}

/** What can be asked of a connection that may belong to another process. */
export type LiveConnection = Pick<Connection, "checkNumber" | "groups" | "contacts" | "chats">;

export interface LineHealth {
  /** Null if the line has no connection. */
  connection: ConnectionHealth | null;
  /** When the line logged in, Unix ms; null if it is not logged in. */
  connectedSince: number | null;
}

export interface LiveLines {
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
  /** Returns the line's health. Rejects with NetworkTimeout if the line's process does not answer. */
  health(lineId: string): Promise<LineHealth>;
}
