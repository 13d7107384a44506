/**
 * Queries of `w:sync:app:state`: settings that an account's devices share, in collections that grow by patches. The phone
 * writes into one of them; of a companion's own patch only the version is counted.
 */
import { type BinaryNode, child, childrenOf, element, result } from "../world/stanza.ts";
import { type Account, PHONE_SETTINGS } from "../world/directory.ts";
import type { QueryContext } from "./query.ts";

export function answerAppState(query: BinaryNode, { companion: { account } }: QueryContext): BinaryNode {
  const collections = childrenOf(child(query, "sync"), "collection").map((collection) => {
    const { name = "", version = "0" } = collection.attrs;
    const patches = patchesAfter(account, { name, version: Number(version) });
    const reached = Number(version) + patches.length + childrenOf(collection, "patch").length;
    const content = patches.map((patch) => element("patch", {}, patch));
    return element("collection", { name, version: String(reached) }, [element("patches", {}, content)]);
  });
  return result(query, [element("sync", {}, collections)]);
}

function patchesAfter({ settings }: Account, { name, version }: { name: string; version: number }): Uint8Array[] {
  return name === PHONE_SETTINGS ? settings.slice(version) : [];
}
