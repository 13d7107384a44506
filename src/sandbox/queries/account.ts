/** Queries about accounts: media access, profiles, settings, restrictions, unlinking. */
import { Buffer } from "node:buffer";
import { isGroup } from "../world/address.ts";
import { cappingJson, timelockJson } from "../world/notices.ts";
import type { Switchboard } from "../world/switchboard.ts";
import { type BinaryNode, bytesOf, child, childrenOf, element, refusal, result, textOf } from "../world/stanza.ts";
import type { Standing } from "../world/trust.ts";
import type { QueryContext } from "./query.ts";

/** How long a client may use a media token before it must query a new one. */
const MEDIA_TTL_SECONDS = "3600";
/** The network's own limit for a file. */
const MAX_MEDIA_BYTES = String(2 * 1024 ** 3);

/** GraphQL queries (`w:mex`), by the ids that the apps use. */
const MEX_QUERIES: Record<string, (standing: Standing) => Record<string, unknown>> = {
  "23983697327930364": (standing) => ({ xwa2_fetch_account_reachout_timelock: timelockJson(standing) }),
  "24503548349331633": (standing) => ({ xwa2_message_capping_info: cappingJson(standing) }),
};

/** Returns the profiles of those requested accounts that are businesses. */
function answerBusiness(query: BinaryNode, { directory }: Switchboard): BinaryNode | null {
  const asked = child(query, "business_profile");
  if (!asked) return null;
  const profiles = childrenOf(asked, "profile").flatMap(({ attrs: { jid } }) => {
    const { business } = directory.resolve(jid)?.account ?? {};
    if (!business) return [];
    const { category, ...texts } = business;
    const fields = Object.entries(texts).flatMap(([name, text]) => text ? [element(name, {}, Buffer.from(text))] : []);
    const categories = category ? [element("category", { id: "1" }, Buffer.from(category))] : [];
    return [element("profile", { jid, tag: "1" }, [...fields, element("categories", {}, categories)])];
  });
  return result(query, [element("business_profile", { v: "244" }, profiles)]);
}

export function answerAccount(query: BinaryNode, { companion, network }: QueryContext): BinaryNode | null {
  switch (query.attrs.xmlns) {
    case "w:m": {
      const { host } = network.media;
      const auth = `${network.media.auth}.${companion.account.number}`;
      const attributes = { auth, ttl: MEDIA_TTL_SECONDS, auth_ttl: MEDIA_TTL_SECONDS, max_buckets: "12" };
      const hosts = [element("host", { hostname: host, maxContentLengthBytes: MAX_MEDIA_BYTES })];
      return result(query, [element("media_conn", attributes, hosts)]);
    }
    case "w:biz":
      return answerBusiness(query, network);
    case "w:mex": {
      const answer = MEX_QUERIES[child(query, "query")?.attrs.query_id ?? ""];
      const data = answer?.(network.trust.standing(companion.account));
      const json = data
        ? { data }
        : { data: null, errors: [{ message: "unknown query", extensions: { error_code: 400 } }] };
      return result(query, [element("result", {}, Buffer.from(JSON.stringify(json)))]);
    }
    case "md": {
      // The session itself unlinks the companion, after it has sent this answer.
      const named = child(query, "remove-companion-device")?.attrs.jid;
      if (named === undefined) return null;
      return named === companion.jid ? result(query) : refusal(query, { code: 403, text: "forbidden" });
    }
    default:
      return null;
  }
}

const BAD_REQUEST = { code: 400, text: "bad-request" };
const NOT_FOUND = { code: 404, text: "item-not-found" };

/** Answers `w:profile:picture`; without a target, for the account's own picture. */
export function answerPicture(query: BinaryNode, { companion, network }: QueryContext): BinaryNode {
  const { target, type } = query.attrs;
  const group = isGroup(target) ? network.groups.get(target!) : null;
  const owner = group ?? network.directory.resolve(target ?? companion.account.jid)?.account;
  if (!owner) return refusal(query, NOT_FOUND);
  if (type === "get") {
    if (!owner.picture) return refusal(query, NOT_FOUND);
    return result(query, [element("picture", { id: "1", type: "image", url: owner.picture })]);
  }
  const { account } = companion;
  const may = group
    ? group.participants.includes(account) && (!group.locked || group.admins.has(account))
    : owner === account;
  if (!may) return refusal(query, { code: 403, text: "forbidden" });
  const picture = child(query, "picture");
  owner.picture = picture ? network.media.keepPicture(bytesOf(picture)) : null;
  return result(query, picture ? [element("picture", { id: "1" })] : []);
}

/** Answers `status`, which sets the account's "about" text. */
export function answerAbout(query: BinaryNode, { companion }: QueryContext): BinaryNode | null {
  if (query.attrs.type !== "set") return null;
  companion.account.about = textOf(child(query, "status"));
  return result(query);
}

/** Answers `blocklist`; blocked contacts are identified by LID. */
export function answerBlocklist(query: BinaryNode, { companion, network }: QueryContext): BinaryNode {
  const { blocked } = companion.account;
  const item = child(query, "item");
  if (query.attrs.type === "set") {
    const account = network.directory.resolve(item?.attrs.jid)?.account;
    if (!account) return refusal(query, NOT_FOUND);
    if (item!.attrs.action !== "block") blocked.delete(account);
    else if (account === companion.account) return refusal(query, BAD_REQUEST);
    else blocked.add(account);
  }
  const items = [...blocked].map(({ lid, jid }) => element("item", { jid: lid, pn_jid: jid }));
  return result(query, [element("list", {}, items)]);
}

/** The values that a privacy setting can have. */
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
      if (!privacy.has(name) || !VALUES.has(value)) return refusal(query, BAD_REQUEST);
      privacy.set(name, value);
    }
    return result(query);
  }
  const categories = [...companion.account.privacy].map(([name, value]) => element("category", { name, value }));
  return result(query, [element("privacy", {}, categories)]);
}

/**
 * Answers `w:sync:app:state`: the settings shared by an account's devices, in collections that grow by patches. A
 * companion that uploads a patch but lacks earlier ones is refused, and gets those.
 */
export function answerAppState(query: BinaryNode, { companion: { account, id }, network }: QueryContext): BinaryNode {
  const collections = childrenOf(child(query, "sync"), "collection").map((collection) => {
    const { name = "", version = "0" } = collection.attrs;
    const changesOf = () => account.settings.get(name) ?? [];
    const missed = changesOf().slice(Number(version)).map((patch) => element("patch", {}, patch));
    const brought = childrenOf(collection, "patch").map(bytesOf);
    const conflicts = brought.length > 0 && missed.length > 0;
    if (brought.length > 0 && !conflicts) network.changeSettings({ account, device: id }, name, brought);
    return element(
      "collection",
      { name, version: String(changesOf().length), type: conflicts ? "error" : undefined },
      [
        ...(conflicts ? [element("error", { code: "409", text: "conflict" })] : []),
        element("patches", {}, missed),
      ],
    );
  });
  return result(query, [element("sync", {}, collections)]);
}
