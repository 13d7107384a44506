/** Queries of `encrypt`: uploading, counting and checking one's own keys, fetching those of others. */
import { keysOf } from "../directory.ts";
import { bundleNodes, readBundle, readSignedPreKey } from "../key_store.ts";
import { type BinaryNode, child, childrenOf, element, refusal, result, SERVER } from "../stanza.ts";
import type { QueryContext } from "./table.ts";

/** Below this many one-time keys a companion is asked for more (Baileys uploads below five). */
const LOW_PRE_KEYS = 5;

export function answerKeys(query: BinaryNode, context: QueryContext): BinaryNode | null {
  const { keys } = context.companion;
  if (query.attrs.type === "set") {
    const rotated = child(query, "rotate");
    if (rotated) {
      const signedPreKey = readSignedPreKey(child(rotated, "skey"));
      if (!signedPreKey) return badRequest(query);
      keys.signedPreKey = signedPreKey;
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
    const keys = endpoint && keysOf(endpoint);
    if (!endpoint || !keys) {
      return element("user", { jid }, [element("error", { code: "404", text: "item-not-found" })]);
    }
    const nodes = bundleNodes(keys.take());
    const companion = endpoint.account.companions.get(endpoint.device);
    if (companion) {
      nodes.push(element("device-identity", {}, companion.identity));
      if (keys.preKeyCount < LOW_PRE_KEYS) {
        const low = element("count", { value: String(keys.preKeyCount) });
        companion.mailbox.put(
          element("notification", { from: SERVER, id: network.stanzaId(), type: "encrypt", t: seconds(network) }, [
            low,
          ]),
        );
      }
    }
    return element("user", { jid }, nodes);
  });
}

function seconds(network: QueryContext["network"]): string {
  return String(Math.floor(network.runtime.clock.now() / 1000));
}
