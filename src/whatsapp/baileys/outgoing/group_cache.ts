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

  /** Stores what the network has just returned. */
  function keep(metadata: GroupMetadata): GroupMetadata {
    kept.set(metadata.id, metadata);
    return metadata;
  }

  return {
    /** Resolves to the metadata, from the cache or the network. Throws what the library throws. */
    metadata: async (jid: string) => kept.get(jid) ?? keep(await socket().groupMetadata(jid)),
    keep,
    /** Resolves to the metadata if it is cached. */
    cached: (jid: string) => Promise.resolve(kept.get(jid)),
    /** Drops the metadata of a group that has changed. */
    forget: (jid: string) => void kept.delete(jid),
  };
}
