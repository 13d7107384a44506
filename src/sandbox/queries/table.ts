/**
 * Answers the queries (`<iq>`) of a linked companion. The table maps each namespace to its handler; there is one file
 * per family of queries.
 */
import { type BinaryNode, refusal, result } from "../world/stanza.ts";
import type { QueryContext } from "../world/switchboard.ts";
import { accountQueries } from "./account.ts";
import { answerKeys, answerUsync } from "./devices.ts";
import { answerGroups } from "./groups.ts";

/** Answers one query; returns null if the namespace has no such query. */
type QueryHandler = (query: BinaryNode, context: QueryContext) => BinaryNode | null;

const accepted: QueryHandler = (query) => result(query);

const HANDLERS: ReadonlyMap<string | undefined, QueryHandler> = new Map(Object.entries<QueryHandler>({
  ...accountQueries,
  "encrypt": answerKeys,
  "usync": answerUsync,
  "w:g2": answerGroups,
  "w:p": accepted,
  "passive": accepted,
  "disappearing_mode": accepted,
  "urn:xmpp:whatsapp:dirty": accepted,
  "w:stats": accepted,
}));

/** Answers a query; refuses it with 501 if it is unknown. */
export function answerQuery(query: BinaryNode, context: QueryContext): BinaryNode {
  const { xmlns } = query.attrs;
  const answer = HANDLERS.get(xmlns)?.(query, context);
  if (answer) return answer;
  context.network.runtime.log.debug({ xmlns }, "unknown query");
  return refusal(query, "501");
}
