/**
 * Answers the queries (`<iq>`) of a linked companion. The table maps each namespace to its handler; there is one file
 * per family of queries.
 */
import type { QueryContext, QueryHandler } from "./query.ts";
import { type BinaryNode, refusal, result } from "../world/stanza.ts";
import {
  answerAbout,
  answerAccount,
  answerAppState,
  answerBlocklist,
  answerPicture,
  answerSettings,
} from "./account.ts";
import { answerGroups } from "./groups.ts";
import { answerKeys } from "./keys.ts";
import { answerUsync } from "./usync.ts";

const accepted: QueryHandler = (query) => result(query);

const HANDLERS: Readonly<Record<string, QueryHandler>> = {
  "encrypt": answerKeys,
  "usync": answerUsync,
  "w:g2": answerGroups,
  "w:p": accepted,
  "passive": accepted,
  "md": answerAccount,
  "w:m": answerAccount,
  "w:profile:picture": answerPicture,
  "w:biz": answerAccount,
  "w:mex": answerAccount,
  "abt": answerSettings,
  "privacy": answerSettings,
  "blocklist": answerBlocklist,
  "status": answerAbout,
  "disappearing_mode": accepted,
  "urn:xmpp:whatsapp:dirty": accepted,
  "w:stats": accepted,
  "w:sync:app:state": answerAppState,
};

/** Answers a query; refuses it with 501 if it is unknown. */
export function answerQuery(query: BinaryNode, context: QueryContext): BinaryNode {
  const handler = HANDLERS[query.attrs.xmlns ?? ""];
  const answer = handler?.(query, context);
  if (answer) return answer;
  context.network.runtime.log.debug({ xmlns: query.attrs.xmlns }, "a query that the sandbox does not know");
  return refusal(query, { code: 501, text: "feature-not-implemented" });
}
