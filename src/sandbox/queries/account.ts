/** Queries about accounts: media access, profiles, settings, restrictions, unlinking. */
import { Buffer } from "node:buffer";
import { cappingJson, timelockJson } from "../world/notices.ts";
import {
  type BinaryNode,
  bytesOf,
  child,
  childrenOf,
  element,
  isGroup,
  refusal,
  result,
  textOf,
} from "../world/stanza.ts";
import type { QueryContext } from "../world/switchboard.ts";
import type { Restrictions } from "../world/trust.ts";

/** The handlers by namespace. */
export const accountQueries = {
  "w:m": answerMedia,
  "w:biz": answerBusiness,
  "w:mex": answerMex,
  "md": answerUnlinking,
  "w:profile:picture": answerPicture,
  "status": answerAbout,
  "blocklist": answerBlocklist,
  "abt": answerProps,
  "privacy": answerPrivacy,
  "w:sync:app:state": answerAppState,
};

/** How long a client may use a media token before it must query a new one. */
const MEDIA_TTL_SECONDS = "3600";
/** The network's own limit for a file. */
const MAX_MEDIA_BYTES = String(2 * 1024 ** 3);

function answerMedia(query: BinaryNode, { companion, network: { media } }: QueryContext): BinaryNode {
  const auth = `${media.auth}.${companion.account.number}`;
  const attributes = { auth, ttl: MEDIA_TTL_SECONDS, auth_ttl: MEDIA_TTL_SECONDS, max_buckets: "12" };
  const hosts = [element("host", { hostname: media.host, maxContentLengthBytes: MAX_MEDIA_BYTES })];
  return result(query, [element("media_conn", attributes, hosts)]);
}

/** Returns the profiles of those requested accounts that are businesses. */
function answerBusiness(query: BinaryNode, { network: { directory } }: QueryContext): BinaryNode | null {
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

/** GraphQL queries (`w:mex`), by the ids that the apps use. Null: the input is not known. */
const MEX_QUERIES: Record<string, (input: unknown, context: QueryContext) => Record<string, unknown> | null> = {
  "23983697327930364": (_, context) => ({
    xwa2_fetch_account_reachout_timelock: timelockJson(limitsOf(context)),
  }),
  "27910975521856601": (input, context) => {
    if ((input as { type?: string }).type !== "INDIVIDUAL_NEW_CHAT_THREAD") return null;
    return { xwa2_message_capping_info: cappingJson(limitsOf(context)) };
  },
  "9152604461510864": (input, { companion }) => {
    const { text, ephemeral_duration_sec } = input as { text?: unknown; ephemeral_duration_sec?: unknown };
    if (typeof text !== "string" || ephemeral_duration_sec !== 0) return null;
    companion.account.about = text;
    return { xwa2_update_text_status: { result: "SUCCESS" } };
  },
  "25347099718279209": (_, { companion: { account: { username } } }) => ({
    xwa2_username_get: { username_info: username && { username: username.name, state: "ACTIVE", pin: username.pin } },
  }),
  "24072923595647473": (input, { network }) => ({
    xwa2_text_status_list: (input as { jid?: string }[]).map(({ jid }) => ({
      jid,
      text: network.directory.resolve(jid)?.account.about || null,
    })),
  }),
};

function limitsOf({ companion, network }: QueryContext): Restrictions {
  return network.trust.restrictions(companion.account);
}

function answerMex(query: BinaryNode, context: QueryContext): BinaryNode {
  const asked = child(query, "query");
  const { variables }: { variables?: { input?: unknown } } = JSON.parse(textOf(asked) || "{}");
  const data = MEX_QUERIES[asked?.attrs.query_id ?? ""]?.(variables?.input ?? {}, context);
  const json = data
    ? { data }
    : { data: null, errors: [{ message: "unknown query", extensions: { error_code: 400 } }] };
  return result(query, [element("result", {}, Buffer.from(JSON.stringify(json)))]);
}

/** Answers `md`. The session itself unlinks the companion, after it has sent this answer. */
function answerUnlinking(query: BinaryNode, { companion }: QueryContext): BinaryNode | null {
  const named = child(query, "remove-companion-device")?.attrs.jid;
  if (named === undefined) return null;
  return named === companion.jid ? result(query) : refusal(query, "403");
}

/** Answers `w:profile:picture`; without a target, for the account's own picture. */
function answerPicture(query: BinaryNode, { companion, network }: QueryContext): BinaryNode {
  const { target, type } = query.attrs;
  const group = isGroup(target) ? network.groups.get(target!) : null;
  const owner = group ?? network.directory.resolve(target ?? companion.account.jid)?.account;
  if (!owner) return refusal(query, "404");
  if (type === "get") {
    if (!owner.picture) return refusal(query, "404");
    return result(query, [element("picture", { id: "1", type: "image", url: owner.picture })]);
  }
  const { account } = companion;
  const may = group
    ? group.participants.includes(account) && (!group.locked || group.admins.has(account))
    : owner === account;
  if (!may) return refusal(query, "403");
  const picture = child(query, "picture");
  if (picture && !isJpeg(bytesOf(picture))) return refusal(query, "406");
  owner.picture = picture ? network.media.keepPicture(bytesOf(picture)) : null;
  return result(query, picture ? [element("picture", { id: "1" })] : []);
}

function isJpeg(bytes: Uint8Array): boolean {
  return [0xff, 0xd8, 0xff].every((byte, at) => bytes[at] === byte);
}

/** Answers `status`, which once set the account's "about" text, and changes nothing any more. */
function answerAbout(query: BinaryNode): BinaryNode | null {
  return query.attrs.type === "set" ? result(query) : null;
}

/** Answers `blocklist`; blocked contacts are identified by LID. */
function answerBlocklist(query: BinaryNode, { companion, network }: QueryContext): BinaryNode {
  const { blocked } = companion.account;
  const item = child(query, "item");
  if (query.attrs.type === "set") {
    const account = network.directory.resolve(item?.attrs.jid)?.account;
    if (!account) return refusal(query, "404");
    if (item!.attrs.action !== "block") blocked.delete(account);
    else if (account === companion.account) return refusal(query, "400");
    else blocked.add(account);
  }
  const items = [...blocked].map(({ lid, jid }) => element("item", { jid: lid, pn_jid: jid }));
  return result(query, [element("list", {}, items)]);
}

/** Answers `abt`, the settings of the app; there are none. */
function answerProps(query: BinaryNode, { companion }: QueryContext): BinaryNode {
  return result(query, [element("props", { protocol: "1", hash: `sandbox-${companion.account.number}` }, [])]);
}

/** The values that a privacy setting can have. */
const VALUES = new Set(["all", "contacts", "contact_blacklist", "none", "match_last_seen", "known"]);

/** Answers `privacy`: the account's privacy settings, and the tokens that it gives to others. */
function answerPrivacy(query: BinaryNode, { companion: { account }, network }: QueryContext): BinaryNode {
  const { privacy } = account;
  if (query.attrs.type === "set") {
    for (const token of childrenOf(child(query, "tokens"), "token")) {
      const holder = network.directory.resolve(token.attrs.jid)?.account;
      if (holder) network.trust.issue(account, holder);
    }
    for (const { attrs: { name = "", value = "" } } of childrenOf(child(query, "privacy"), "category")) {
      if (!privacy.has(name) || !VALUES.has(value)) return refusal(query, "400");
      privacy.set(name, value);
    }
    return result(query);
  }
  const categories = [...privacy].map(([name, value]) => element("category", { name, value }));
  return result(query, [element("privacy", {}, categories)]);
}

/**
 * Answers `w:sync:app:state`: the settings shared by an account's devices, in collections that grow by patches. A
 * companion that uploads a patch but lacks earlier ones is refused, and gets those.
 */
function answerAppState(query: BinaryNode, { companion: { account, id }, network }: QueryContext): BinaryNode {
  const collections = childrenOf(child(query, "sync"), "collection").map((collection) => {
    const { name = "", version = "0" } = collection.attrs;
    const changesOf = () => account.settings.get(name) ?? [];
    const missed = changesOf().slice(Number(version)).map((patch) => element("patch", {}, patch));
    const brought = childrenOf(collection, "patch").map(bytesOf);
    const conflicts = brought.length > 0 && missed.length > 0;
    if (brought.length > 0 && !conflicts) network.changeSettings({ account, device: id }, name, brought);
    const attributes = { name, version: String(changesOf().length), type: conflicts ? "error" : undefined };
    return element("collection", attributes, [
      ...(conflicts ? [element("error", { code: "409", text: "conflict" })] : []),
      element("patches", {}, missed),
    ]);
  });
  return result(query, [element("sync", {}, collections)]);
}
