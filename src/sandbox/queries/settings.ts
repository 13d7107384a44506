/** Queries about an account's settings: server properties, privacy. */
import { type BinaryNode, child, childrenOf, element, result } from "../world/stanza.ts";
import type { QueryContext } from "./query.ts";

/** What a fresh account has: everybody may see and write. */
const PRIVACY = {
  readreceipts: "all",
  profile: "all",
  status: "all",
  online: "all",
  last: "all",
  groupadd: "all",
  calladd: "all",
  messages: "all",
};

export function answerSettings(query: BinaryNode, { companion, network }: QueryContext): BinaryNode | null {
  if (child(query, "props")) {
    return result(query, [element("props", { protocol: "1", hash: `sandbox-${companion.account.number}` }, [])]);
  }
  if (query.attrs.type === "set") {
    for (const token of childrenOf(child(query, "tokens"), "token")) {
      const holder = network.directory.resolve(token.attrs.jid)?.account;
      if (holder) network.trust.issue(companion.account, holder);
    }
    return result(query);
  }
  const categories = Object.entries(PRIVACY).map(([name, value]) => element("category", { name, value }));
  return result(query, [element("privacy", {}, categories)]);
}
