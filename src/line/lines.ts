/** The lines as the HTTP floor uses them: it writes wishes, the supervisor fulfils them. */
import type { Line, LineStatus } from "./line.ts";
import type { Group, NumberCheck } from "../whatsapp/connection.ts";

export interface Lines {
  /** Throws Problem session_limit_reached when the plan allows no more (checked inside the commit). */
  create(accountId: string, options: { name: string; pairingPhone: string | null }): Promise<Line>;
  /** Oldest first. Deleted lines do not appear. */
  list(accountId: string): Promise<Line[]>;
  /** Throws Problem not_found, also for another account's line. */
  get(accountId: string, lineId: string): Promise<Line>;
  /**
   * What the owner needs to link the line now; asking begins a new round when the last one ran out unused. `qr` is a data
   * URL of a PNG. Throws Problem not_found.
   */
  linking(accountId: string, lineId: string): Promise<Linking>;
  /**
   * Resolves to the line after the wish was written and, for at most some seconds, awaited: a client that reads the
   * answer of `disconnect` sees `disconnected`. Deleting resolves to the last record.
   */
  wish(accountId: string, lineId: string, wish: "connect" | "pause" | "log_out" | "delete"): Promise<Line>;
  /** The line a send goes out on: the given one, else the oldest connected. Throws session_not_connected, no_connected_session. */
  forSending(accountId: string, lineId: string | null): Promise<Line>;
  /** Throws session_not_connected, network_error, network_timeout. */
  checkNumber(accountId: string, lineId: string, number: string): Promise<NumberCheck>;
  /** Throws as checkNumber. */
  groups(accountId: string, lineId: string): Promise<Group[]>;
}

/** How far linking is: the spec's "Session QR / pairing result". */
export interface Linking {
  status: LineStatus;
  qr: string | null;
  pairingCode: string | null;
}
