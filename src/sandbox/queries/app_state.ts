/**
 * Queries of `w:sync:app:state`. A sandbox phone keeps no settings of chats, so every collection stays empty; a companion's
 * own patch is taken in by counting its version.
 */
import { type BinaryNode, child, childrenOf, element, result } from "../world/stanza.ts";

export function answerAppState(query: BinaryNode): BinaryNode {
  const collections = childrenOf(child(query, "sync"), "collection").map((collection) => {
    const { name, version } = collection.attrs;
    const patched = childrenOf(collection, "patch").length;
    return element("collection", { name, version: String(Number(version ?? 0) + patched) });
  });
  return result(query, [element("sync", {}, collections)]);
}
