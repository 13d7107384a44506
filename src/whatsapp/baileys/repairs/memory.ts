/** What the library keeps in memory of each message and each person, with a timer each: bounded here, and without timers. */
import type { SignalRepositoryWithLIDStore, WASocket } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";

/** Names of people that one line remembers, two a person: more than a group has members. */
const MOST_NAMES = 10_000;

/** The part of the library's manager that is repaired. */
type RecentMessages = Pick<NonNullable<WASocket["messageRetryManager"]>, "addRecentMessage">;

/**
 * A line's last 512 messages are there for five minutes, for receivers who ask again: not only those that it sent, for
 * which the store is asked (`outgoing/sent_store.ts`), but also those that came in. Whoever asked for their own had it
 * sent in the line's name, to a whole group too. So none is kept.
 */
export function keepNoRecent(recent: RecentMessages | null): void {
  if (recent) recent.addRecentMessage = () => {};
}

/**
 * Numbers and their `@lid`s are there for three days, of everybody; and each timer keeps alive the key transaction that it
 * began in, with the sessions that were read there. They are in the store too.
 */
export function boundNames(lidMapping: SignalRepositoryWithLIDStore["lidMapping"]): void {
  Object.assign(lidMapping, { mappingCache: new LRUCache<string, string>(atMost(MOST_NAMES)) });
}
