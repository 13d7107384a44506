/**
 * The library keeps a line's last 512 sent messages in memory, each with a timer of five minutes, for receivers who ask
 * again. What is on disk before it leaves (`outgoing/sent_store.ts`) need not be there twice: of that it asks the store.
 */
import type { WASocket } from "@whiskeysockets/baileys";

/** The part of the library's manager that is repaired. */
type RecentMessages = Pick<NonNullable<WASocket["messageRetryManager"]>, "addRecentMessage">;

/** Leaves out messages with network ids that `isStored`. */
export function leaveOutStored(recent: RecentMessages | null, isStored: (networkId: string) => boolean): void {
  if (!recent) return;
  const add = recent.addRecentMessage.bind(recent);
  recent.addRecentMessage = (to, networkId, message) => {
    if (!isStored(networkId)) add(to, networkId, message);
  };
}
