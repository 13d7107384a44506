/** What sending to a group needs to know of it, asked once and kept for a while. */
import type { GroupMetadata, WASocket } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import type { Runtime } from "../../../runtime.ts";

/** Who is in a group may change without a word to a device that was away. */
const KEPT_MS = 10 * 60 * 1000;
/** A big group's metadata is some 100 KiB; a line seldom sends to many at once. */
const GROUPS_KEPT = 50;

export type GroupCache = ReturnType<typeof makeGroupCache>;

export function makeGroupCache(socket: () => WASocket, runtime: Pick<Runtime, "clock">) {
  const kept = new LRUCache<string, GroupMetadata>(atMost(GROUPS_KEPT, { forMs: KEPT_MS, clock: runtime.clock }));

  /** What the network has just said. */
  function keep(metadata: GroupMetadata): GroupMetadata {
    kept.set(metadata.id, metadata);
    return metadata;
  }

  return {
    /** From the cache, else from the network: who gets a message. Throws what the library throws. */
    metadata: async (jid: string) => kept.get(jid) ?? keep(await socket().groupMetadata(jid)),
    keep,
    /** From the cache alone. */
    cached: (jid: string) => Promise.resolve(kept.get(jid)),
    /** The group is not as it was. */
    forget: (jid: string) => void kept.delete(jid),
  };
}
