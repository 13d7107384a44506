/** Queries about profiles: pictures of accounts and groups, and what owners say about themselves. */
import { isGroup } from "../world/address.ts";
import { type BinaryNode, bytesOf, child, element, refusal, result, textOf } from "../world/stanza.ts";
import type { QueryContext } from "./query.ts";

const NOT_FOUND = { code: 404, text: "item-not-found" };

/** `w:profile:picture`: without a target, one's own. */
export function answerPicture(query: BinaryNode, { companion, network }: QueryContext): BinaryNode {
  const { target, type } = query.attrs;
  const group = isGroup(target) ? network.groups.get(target!) : null;
  const owner = group ?? network.directory.resolve(target ?? companion.account.jid)?.account;
  if (!owner) return refusal(query, NOT_FOUND);
  if (type === "get") {
    if (!owner.picture) return refusal(query, NOT_FOUND);
    return result(query, [element("picture", { id: "1", type: "image", url: owner.picture })]);
  }
  const mayNot = group ? group.locked && !group.admins.has(companion.account) : owner !== companion.account;
  if (mayNot) return refusal(query, { code: 403, text: "forbidden" });
  const picture = child(query, "picture");
  owner.picture = picture ? network.media.keepPicture(bytesOf(picture)) : null;
  return result(query, picture ? [element("picture", { id: "1" })] : []);
}

/** `status`: what others read as "about". */
export function answerAbout(query: BinaryNode, { companion }: QueryContext): BinaryNode {
  companion.account.about = textOf(child(query, "status"));
  return result(query);
}

/** `blocklist`: contacts are named by LID. */
export function answerBlocklist(query: BinaryNode, { companion, network }: QueryContext): BinaryNode {
  const { blocked } = companion.account;
  const item = child(query, "item");
  if (query.attrs.type === "set") {
    const account = network.directory.resolve(item?.attrs.jid)?.account;
    if (!account) return refusal(query, NOT_FOUND);
    if (item!.attrs.action === "block") blocked.add(account);
    else blocked.delete(account);
  }
  const items = [...blocked].map(({ lid, jid }) => element("item", { jid: lid, pn_jid: jid }));
  return result(query, [element("list", {}, items)]);
}
