/** Queries of `encrypt`: uploading, counting and checking the companion's own keys, and fetching those of others. */
import { bundleNodes, readBundle, readSignedPreKey } from "../world/key_store.ts";
import { type BinaryNode, child, childrenOf, element, refusal, result } from "../world/stanza.ts";
import type { QueryContext } from "./query.ts";

export function answerKeys(query: BinaryNode, context: QueryContext): BinaryNode | null {
  const { keys } = context.companion;
  if (query.attrs.type === "set") {
    const rotated = child(query, "rotate");
    if (rotated) {
      const signedPreKey = readSignedPreKey(child(rotated, "skey"));
      if (!signedPreKey) return badRequest(query);
      keys.rotate(signedPreKey);
      return result(query);
    }
    const bundle = readBundle(query);
    if (!bundle) return badRequest(query);
    keys.publish(bundle);
    return result(query);
  }
  if (child(query, "count")) return result(query, [element("count", { value: String(keys.preKeyCount) })]);
  if (child(query, "digest")) return result(query, [keys.digest()]);
  if (child(query, "key")) return result(query, [element("list", {}, fetchKeys(query, context))]);
  return null;
}

function badRequest(query: BinaryNode): BinaryNode {
  return refusal(query, { code: 400, text: "bad-request" });
}

function fetchKeys(query: BinaryNode, { network }: QueryContext): BinaryNode[] {
  return childrenOf(child(query, "key"), "user").map(({ attrs: { jid } }) => {
    const endpoint = network.directory.resolve(jid);
    const bundle = endpoint && network.takeKeys(endpoint);
    if (!bundle) return element("user", { jid }, [element("error", { code: "404", text: "item-not-found" })]);
    const companion = endpoint.account.companions.get(endpoint.device);
    const identity = companion ? [element("device-identity", {}, companion.identity)] : [];
    return element("user", { jid }, [...bundleNodes(bundle), ...identity]);
  });
}
