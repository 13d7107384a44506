/** Queries about the account itself: media access, profiles, restrictions, unlinking. */
import { Buffer } from "node:buffer";
import { cappingJson, timelockJson } from "../world/notices.ts";
import type { Switchboard } from "../world/switchboard.ts";
import { type BinaryNode, child, childrenOf, element, refusal, result } from "../world/stanza.ts";
import type { Standing } from "../world/trust.ts";
import type { QueryContext } from "./query.ts";

/** How long a client may use a media token before it asks again. */
const MEDIA_TTL_SECONDS = "3600";
/** The network's own limit for one file. */
const MAX_MEDIA_BYTES = String(2 * 1024 ** 3);

/** GraphQL queries (`w:mex`) by the ids that the apps use. */
const MEX_QUERIES: Record<string, (standing: Standing) => Record<string, unknown>> = {
  "23983697327930364": (standing) => ({ xwa2_fetch_account_reachout_timelock: timelockJson(standing) }),
  "24503548349331633": (standing) => ({ xwa2_message_capping_info: cappingJson(standing) }),
};

/** The profiles of the businesses among those asked for. */
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
      // The session itself unlinks the companion, after this answer has left.
      const named = child(query, "remove-companion-device")?.attrs.jid;
      if (named === undefined) return null;
      return named === companion.jid ? result(query) : refusal(query, { code: 403, text: "forbidden" });
    }
    default:
      return null;
  }
}
