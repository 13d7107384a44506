/** What sending to a group needs to know of it, asked once and kept for a while. */
import type { GroupMetadata, WASocket } from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";

/** Who is in a group may change without a word to a device that was away. */
const KEPT_MS = 10 * 60 * 1000;
/** A big group's metadata is some 100 KiB; a line seldom sends to many at once. */
const GROUPS_KEPT = 50;

export interface GroupCache {
  /** From the cache, else from the network: who gets a message. Throws what the library throws. */
  metadata(jid: string): Promise<GroupMetadata>;
  /** From the cache alone. */
  cached(jid: string): Promise<GroupMetadata | undefined>;
  /** What the network has just said. */
  keep(metadata: GroupMetadata): GroupMetadata;
  /** The group is not as it was. */
  forget(jid: string): void;
}

export function makeGroupCache(socket: () => WASocket, runtime: Pick<Runtime, "clock">): GroupCache {
  const { clock } = runtime;
  const kept = new Map<string, { at: number; metadata: GroupMetadata }>();

  function keep(metadata: GroupMetadata): GroupMetadata {
    kept.delete(metadata.id);
    kept.set(metadata.id, { at: clock.now(), metadata });
    for (const oldest of kept.keys()) {
      if (kept.size <= GROUPS_KEPT) break;
      kept.delete(oldest);
    }
    return metadata;
  }

  function cached(jid: string): GroupMetadata | undefined {
    const entry = kept.get(jid);
    return entry && clock.now() - entry.at < KEPT_MS ? entry.metadata : undefined;
  }

  return {
    metadata: async (jid) => cached(jid) ?? keep(await socket().groupMetadata(jid)),
    keep,
    cached: (jid) => Promise.resolve(cached(jid)),
    forget: (jid) => void kept.delete(jid),
  };
}
