/** Queries about an account's settings: server properties, privacy, and those that its devices share. */
import { type BinaryNode, child, childrenOf, element, refusal, result } from "../world/stanza.ts";
import { type Account, PHONE_SETTINGS } from "../world/directory.ts";
import type { QueryContext } from "./query.ts";

/** Whom a setting may name. */
const VALUES = new Set(["all", "contacts", "contact_blacklist", "none", "match_last_seen", "known"]);

export function answerSettings(query: BinaryNode, { companion, network }: QueryContext): BinaryNode | null {
  if (child(query, "props")) {
    return result(query, [element("props", { protocol: "1", hash: `sandbox-${companion.account.number}` }, [])]);
  }
  if (query.attrs.type === "set") {
    for (const token of childrenOf(child(query, "tokens"), "token")) {
      const holder = network.directory.resolve(token.attrs.jid)?.account;
      if (holder) network.trust.issue(companion.account, holder);
    }
    for (const { attrs: { name = "", value = "" } } of childrenOf(child(query, "privacy"), "category")) {
      const { privacy } = companion.account;
      if (!privacy.has(name) || !VALUES.has(value)) return refusal(query, { code: 400, text: "bad-request" });
      privacy.set(name, value);
    }
    return result(query);
  }
  const categories = [...companion.account.privacy].map(([name, value]) => element("category", { name, value }));
  return result(query, [element("privacy", {}, categories)]);
}

/**
 * `w:sync:app:state`: settings that an account's devices share, in collections that grow by patches. The phone writes into
 * one of them; of a companion's own patch only the version is counted.
 */
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
