/** Queries of `w:g2`: the groups of the asker, and one group. Groups are made and changed by the control API only. */
import { groupNode } from "../world/groups.ts";
import { type BinaryNode, child, element, refusal, result } from "../world/stanza.ts";
import type { QueryContext } from "./query.ts";

export function answerGroups(query: BinaryNode, { companion, network }: QueryContext): BinaryNode | null {
  if (query.attrs.type !== "get") return refusal(query, { code: 405, text: "not-allowed" });
  if (child(query, "participating")) {
    return result(query, [element("groups", {}, network.groups.of(companion.account).map(groupNode))]);
  }
  if (!child(query, "query")) return null;
  const group = network.groups.get(query.attrs.to ?? "");
  if (!group) return refusal(query, { code: 404, text: "item-not-found" });
  if (!group.participants.includes(companion.account)) return refusal(query, { code: 403, text: "forbidden" });
  return result(query, [groupNode(group)]);
}
