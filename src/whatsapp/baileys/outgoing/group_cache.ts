/** Caches the group metadata that sending needs. */
import type { GroupMetadata, WASocket } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import type { Runtime } from "../../../runtime.ts";

/** Members may change without notice to a device that was offline. */
const KEPT_MS = 10 * 60 * 1000;
/** The metadata of a large group takes some 100 KiB. A line seldom sends to many groups at once. */
const GROUPS_KEPT = 50;

export type GroupCache = ReturnType<typeof makeGroupCache>;

export function makeGroupCache(socket: () => WASocket, runtime: Pick<Runtime, "clock">) {
  const kept = new LRUCache<string, GroupMetadata>(atMost(GROUPS_KEPT, { forMs: KEPT_MS, clock: runtime.clock }));

  /** Queries under way whose answers may be cached. */
  const asked = new Map<string, Promise<GroupMetadata>>();

  async function ask(jid: string): Promise<GroupMetadata> {
    const answer = socket().groupMetadata(jid);
    asked.set(jid, answer);
    try {
      const metadata = await answer;
      // Not if the group changed meanwhile: a removed member would get messages for as long as the answer is cached.
      if (asked.get(jid) === answer) kept.set(jid, metadata);
      return metadata;
    } finally {
      if (asked.get(jid) === answer) asked.delete(jid);
    }
  }

  return {
    /**
     * Resolves to the metadata, from the cache or the network. Concurrent calls share a query, because a change may
     * name a thousand members. Throws what the library throws.
     */
    metadata: async (jid: string) => kept.get(jid) ?? await (asked.get(jid) ?? ask(jid)),
    /** The same, but always from the network. */
    fresh: ask,
    /** Resolves to the metadata if it is cached. */
    cached: (jid: string) => Promise.resolve(kept.get(jid)),
    /** Drops the metadata of a group that has changed. */
    forget(jid: string): void {
      kept.delete(jid);
      asked.delete(jid);
    },
  };
}
