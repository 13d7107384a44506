/** Files of incoming messages: downloaded, capped, kept on disk, linked for 24 h; or a reason why not. */
import type { FileRecord } from "./store.ts";
import type { ReceivedMedia } from "../event/event.ts";
import type { Incoming } from "../whatsapp/connection.ts";

export interface MediaIngest {
  /**
   * Downloads the file of the message. Never throws: a file that cannot be had gives `url: null` with a reason, and no
   * `file`. The caller adds `file` to the commit of its event with `keepFile`, so that row and event stand or fall together.
   */
  take(
    accountId: string,
    message: Incoming,
    signal: AbortSignal,
  ): Promise<{ media: ReceivedMedia; file: FileRecord | null } | null>;
}
