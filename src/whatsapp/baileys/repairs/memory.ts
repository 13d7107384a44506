/** Limits what the library keeps in memory about messages and people, and avoids its timer for each entry. */
import type { SignalRepositoryWithLIDStore, WASocket } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";

/** Maximum number of names that one line caches, two per person: enough for all members of a group. */
const MOST_NAMES = 10_000;

/** The part of the library's manager that is repaired. */
type RecentMessages = Pick<NonNullable<WASocket["messageRetryManager"]>, "addRecentMessage">;

/**
 * Keeps the library from remembering messages. It holds a line's last 512 for five minutes, to answer retry receipts.
 * That includes received messages, not only those that the line sent, for which the store is asked
 * (`outgoing/sent_store.ts`). The sender of a received message could request it and so have it sent in the line's name,
 * even to a group.
 */
export function keepNoRecent(recent: RecentMessages | null): void {
  if (recent) recent.addRecentMessage = () => {};
}

/**
 * Limits the mapping cache. The library remembers every number and `@lid` for three days, and each timer keeps alive
 * the key transaction in which it was started, with the sessions read there. The mappings are in the store as well.
 */
export function boundNames(lidMapping: SignalRepositoryWithLIDStore["lidMapping"]): void {
  Object.assign(lidMapping, { mappingCache: new LRUCache<string, string>(atMost(MOST_NAMES)) });
}
